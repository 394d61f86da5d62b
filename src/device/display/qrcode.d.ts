/** Declares the encoder alone. The package's entry loads its renderers of pictures too, which nothing here uses. */
declare module 'qrcode/lib/core/qrcode.js' {
  export { create } from 'qrcode';
}
