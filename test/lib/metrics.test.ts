import { expect, it } from 'vitest';
import { Histogram, labelled, metricsText } from '../../src/lib/metrics.ts';

it('writes counters, gauges and histograms as Prometheus reads them', () => {
  const seconds = new Histogram([0.5, 1]);
  for (const value of [0.25, 0.5, 0.75, 2]) seconds.observe(value);
  const text = metricsText([
    {
      name: 'pushes_total',
      help: 'by result',
      type: 'counter',
      samples: new Map([
        ['{result="SUCCESS"}', 2],
        [labelled({ source: 'a "b"', result: 'E39' }), 1],
      ]),
    },
    { name: 'boxes_online', type: 'gauge', samples: [['', 3]] },
    { name: 'seconds', type: 'histogram', samples: seconds.samples() },
  ]);
  expect(text.split('\n')).toEqual([
    '# HELP pushes_total by result',
    '# TYPE pushes_total counter',
    'pushes_total{result="SUCCESS"} 2',
    'pushes_total{source="a \\"b\\"",result="E39"} 1',
    '# TYPE boxes_online gauge',
    'boxes_online 3',
    '# TYPE seconds histogram',
    'seconds_bucket{le="0.5"} 2',
    'seconds_bucket{le="1"} 3',
    'seconds_bucket{le="+Inf"} 4',
    'seconds_sum 3.5',
    'seconds_count 4',
    '',
  ]);
});
