/** The look of every report page, in light and in dark. Kinds of a timeline are coloured alike in rows and filters. */
export const STYLE = `
:root { color-scheme: light dark; --line: #8883; --soft: #8881; --step: #5b6b7b; --call: #3a6fc4; --service: #2a8f8f;
  --message: #8a5cc2; --callback: #b26a00; --status: #7a7a7a; --screen: #1a8a3a; --problem: #c62828; }
body { font: 15px/1.5 system-ui, sans-serif; margin: 2rem auto; max-width: 70rem; padding: 0 1rem; }
table { border-collapse: collapse; width: 100%; }
th, td { border-bottom: 1px solid var(--line); padding: .25rem .6rem; text-align: left; vertical-align: top; }
td, p { overflow-wrap: anywhere; }
td:first-child { white-space: nowrap; text-align: right; font-variant-numeric: tabular-nums; }
pre { margin: .3rem 0; max-width: 100%; overflow-x: auto; white-space: pre-wrap; word-break: break-word; font-size: 12px; }
img { border: 1px solid #8888; max-width: 20rem; display: block; }
section { margin-top: 2.5rem; }
summary { cursor: pointer; } pre { font-weight: normal; }
svg text { font: 12px system-ui, sans-serif; fill: currentColor; }
svg .axis { stroke: currentColor; fill: none; } svg .grid { stroke: var(--line); fill: none; }
svg .curve { stroke: #3a7bd5; stroke-width: 2; fill: none; } svg .mark { stroke: #b26a00; stroke-dasharray: 3 3; }
svg .dot { fill: #b26a00; }
figure { display: inline-block; margin: 1rem 1rem 0 0; } figcaption { font-weight: bold; }
.passed { color: #1a8a3a; } .failed, .missing, .problem { color: #c62828; } .skipped { color: #888; } .differs { color: #b26a00; }
.timeline td:nth-child(2) { width: 5.5rem; font-size: 12px; white-space: nowrap; border-left: 3px solid var(--kind, transparent);
  color: var(--kind); }
.timeline tr.step td { background: var(--soft); font-weight: 600; } .timeline tr.problem td { font-weight: bold; }
.timeline tr.message td:last-child { white-space: pre-wrap; }
.filters { display: flex; flex-wrap: wrap; gap: .4rem; margin: .6rem 0; font-size: 13px; }
.filters label { border: 1px solid var(--kind); color: var(--kind); border-radius: 1rem; padding: 0 .6rem 0 .3rem; }
${kinds('step', 'call', 'service', 'message', 'callback', 'status', 'screen', 'problem')}
`;

/** The colour of each kind, and that a filter which is off hides its rows. */
function kinds(...names: string[]): string {
  return names
    .map(
      (name) =>
        `.timeline tr.${name}, .filters label.${name} { --kind: var(--${name}); } ` +
        `section:has(.filters label.${name} input:not(:checked)) .timeline tr.${name} { display: none; }`,
    )
    .join('\n');
}
