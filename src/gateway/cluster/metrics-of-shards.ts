/**
 * Merges the metrics of several shards into one text (Prometheus, text format 0.0.4). Adds the label of its shard to
 * every sample.
 */
export function labelled(texts: readonly { shard: number; text: string }[]): string {
  const families = new Map<string, { about: Set<string>; samples: string[] }>();
  const familyOf = (name: string) => {
    const family = families.get(name) ?? { about: new Set(), samples: [] };
    families.set(name, family);
    return family;
  };
  for (const { shard, text } of texts) {
    let name = '';
    for (const line of text.split('\n')) {
      const about = /^# (?:HELP|TYPE) (\S+)/.exec(line);
      const sample = /^([a-zA-Z_:][\w:]*)(?:\{(.*)\})? (.+)$/.exec(line);
      if (about?.[1] !== undefined) {
        name = about[1];
        familyOf(name).about.add(line);
      } else if (sample !== null) {
        const [, metric = '', labels = '', value = ''] = sample;
        const all = [`shard="${shard}"`, labels].filter((it) => it !== '').join(',');
        familyOf(metric.startsWith(name) && name !== '' ? name : metric).samples.push(`${metric}{${all}} ${value}`);
      }
    }
  }
  return [...families.values()].map(({ about, samples }) => `${[...about, ...samples].join('\n')}\n`).join('');
}
