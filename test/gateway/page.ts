import { openInBrowser } from '../support/browser.ts';
import { eventually } from '../support/net.ts';

/** Opens a page of a gateway in Chromium. */
export async function openPage(url: string, flags?: readonly string[]) {
  const page = await openInBrowser(url, flags);
  const becomes = (expression: string) =>
    eventually(expression, async () => (await page.evaluate(expression)) === true);
  await becomes(`location.href === '${url}' && document.readyState === 'complete'`);
  await page.evaluate(`
    window.faults = [];
    for (const type of ['error', 'unhandledrejection', 'securitypolicyviolation']) {
      addEventListener(type, (event) => faults.push(type + ' ' + (event.message ?? event.reason ?? event.violatedDirective)));
    }
    console.error = (...args) => faults.push(args.join(' '));
  `);
  const shows = (text: string) => becomes(`document.body.innerText.includes(${JSON.stringify(text)})`);
  const click = (label: string) =>
    becomes(`(() => {
      const button = [...document.querySelectorAll('button')].find((it) => it.textContent.includes('${label}') && !it.disabled);
      button?.click();
      return button !== undefined;
    })()`);
  /** What the page's own policy has held back since it was opened. */
  const heldBack = () =>
    page.evaluate(`new Promise((resolve) => {
      const found = [];
      const take = (reports) => found.push(...reports.map(({ body }) => body.effectiveDirective + ' ' + body.sourceFile));
      new ReportingObserver(take, { buffered: true, types: ['csp-violation'] }).observe();
      setTimeout(() => resolve(found), 500);
    })`);
  return { ...page, becomes, shows, click, heldBack };
}
