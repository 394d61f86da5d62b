const url = location.pathname === '/docs/admin' ? '/admin/openapi.json' : '/openapi.json';
SwaggerUIBundle({ url, dom_id: '#api', deepLinking: true, validatorUrl: null });
