/** The folder of the gateway's own pages. */
export const OWN_PAGES = new URL('../console/pages/', import.meta.url);
const SWAGGER = new URL('.', import.meta.resolve('#assets/swagger-ui-dist/package.json'));

/** The scripts and styles of the pages, by path. */
export const PAGE_FILES: Record<string, URL> = {
  '/console.css': new URL('console.css', OWN_PAGES),
  '/console.js': new URL('console.js', OWN_PAGES),
  '/elements.js': new URL('elements.js', OWN_PAGES),
  '/gateway.js': new URL('gateway.js', OWN_PAGES),
  '/registry.js': new URL('registry.js', OWN_PAGES),
  '/registry-forms.js': new URL('registry-forms.js', OWN_PAGES),
  '/tokens.js': new URL('tokens.js', OWN_PAGES),
  '/begin.js': new URL('begin.js', OWN_PAGES),
  '/enrol.js': new URL('enrol.js', OWN_PAGES),
  '/cluster.js': new URL('cluster.js', OWN_PAGES),
  '/calls.js': new URL('calls.js', OWN_PAGES),
  '/credits.js': new URL('credits.js', OWN_PAGES),
  '/sources.js': new URL('sources.js', OWN_PAGES),
  '/faults.js': new URL('faults.js', OWN_PAGES),
  '/resend.js': new URL('resend.js', OWN_PAGES),
  '/sell.js': new URL('sell.js', OWN_PAGES),
  '/order-calls.js': new URL('order-calls.js', OWN_PAGES),
  '/md5.js': new URL('md5.js', OWN_PAGES),
  '/welcome.css': new URL('welcome.css', OWN_PAGES),
  '/welcome.js': new URL('welcome.js', OWN_PAGES),
  '/welcome-parts.js': new URL('welcome-parts.js', OWN_PAGES),
  '/welcome-words.js': new URL('welcome-words.js', OWN_PAGES),
  '/docs/docs.js': new URL('docs.js', OWN_PAGES),
  '/docs/swagger-ui.css': new URL('swagger-ui.css', SWAGGER),
  '/docs/swagger-ui-bundle.js': new URL('swagger-ui-bundle.js', SWAGGER),
};
