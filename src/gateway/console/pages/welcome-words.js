/** The words of the welcome page, by language. */
export const WORDS = {
  en: {
    title: 'Your first five minutes',
    intro:
      'This is a sandbox: nobody pays real money. You are the shop first, and then the customer. Below each step stands the command that does the same, for your own program.',
    shop: 'Your shop',
    service: 'Payment service',
    box: 'Box on the counter',
    customer: 'Customer',
    orderArrow: 'order',
    qrArrow: 'QR',
    payArrow: 'pays',
    backArrow: 'When the money has arrived, the box says so, and your shop gets a callback.',
    gate: 'Token',
    gateHint: "one that an admin has made for you, or the adminToken of the gateway's configuration",
    open: 'Open',
    console: 'Console',
    docs: 'API',
    forSandboxes: 'This page is for sandboxes',
    liveText:
      'This gateway is live: it takes real money, so nothing is paid here by a button. Open this page at a sandbox, for example:',
    emptyTitle: 'Something is missing',
    emptyText:
      'This gateway has no partner with an account that is linked to a box. Add them in the console, or start the demo:',
    screenTitle: 'The screen of the box',
    screenAlt: 'Screen of the box',
    qrAlt: 'QR of the order',
    online: 'online',
    offline: 'offline',
    noBox: 'The box is not connected. Start one, for example the demo:',
    noPicture: 'The picture of this box is not known here. The QR of your order appears in its place.',
    paidPicture: 'Paid',
    boxPage: 'Open the page of the box',
    pushTitle: 'Push an order',
    pushText:
      'The shop wants money for an order. Its program sends the amount, and the box shows a QR for exactly that.',
    amount: 'Amount in đồng',
    content: 'Content',
    password: 'Password of the partner',
    push: 'Show QR',
    pushed: (box) => `${box} shows the QR.`,
    pushedUnconfirmed: (box) => `Sent to ${box}.`,
    payTitle: 'Pay it',
    payText: 'Now you are the customer. A bank app would scan the QR; here the sandbox plays the bank.',
    pay: (amount) => `Pay ${amount}`,
    payFirst: 'Push an order first',
    paid: 'Paid. The box says so, once.',
    callbackTitle: 'The callback',
    callbackText:
      'The service tells the program of the shop about the payment: an HTTP request to its address, again until it answers.',
    callbackWaits: 'It comes once the order is paid.',
    noCallback:
      'No callback address is set, so no callback was sent. Give the address of your program to the demo, or to the partner in the file of the gateway:',
    noAnswer: 'no answer',
    emptyAnswer: '(an empty answer)',
    sent: 'sent',
    answered: 'answered',
    delivered: 'delivered',
    pending: 'is sent again',
    failed: 'failed',
    commands: 'The same by curl',
    shellHint: 'For the shell of macOS and Linux; on Windows in WSL. $TOKEN and $QR come from the commands before.',
    tokenCommand: 'A token, good for 300 seconds',
    generateCommand: 'A QR for the order',
    sendCommand: (box) => `Onto the box ${box}`,
    payCommand: 'The customer pays',
    listCommand: 'The newest callback, with every attempt',
    boxCommand: 'Is the box connected?',
    demoCommand: 'The demo',
    fileCommand: 'The file of the gateway',
    playCommand: 'The same callback by hand, to your own address',
    copy: 'Copy',
    copied: 'copied',
    done: 'done',
    lost: 'The gateway does not answer.',
    refused: (code) => `Refused with ${code}.`,
    refusals: {
      E02: 'The amount must be a whole number from 1 to 9,999,999,999,999.',
      E46: 'The order is not as expected.',
      E26: 'The content is too long.',
      E34: 'The content has characters that a QR cannot carry: use letters without accents, digits and spaces.',
      '009': 'The content has characters that the test payment does not take: use letters, digits and spaces.',
      E74: 'The password of the partner is wrong.',
      BOX_OFFLINE: 'The box is not connected, so it shows nothing. The QR exists, and the order can be paid.',
    },
  },
  vi: {
    title: 'Năm phút đầu tiên',
    intro:
      'Đây là môi trường thử nghiệm: không ai trả tiền thật. Trước hết bạn là cửa hàng, sau đó là khách. Dưới mỗi bước là lệnh làm đúng việc đó, cho chương trình của bạn.',
    shop: 'Cửa hàng',
    service: 'Dịch vụ thanh toán',
    box: 'Thiết bị tại quầy',
    customer: 'Khách hàng',
    orderArrow: 'đơn',
    qrArrow: 'QR',
    payArrow: 'trả',
    backArrow: 'Khi có tiền, thiết bị báo ngay và cửa hàng nhận được một callback.',
    gate: 'Mã truy cập',
    gateHint: 'mã mà quản trị viên đã cấp, hoặc adminToken trong cấu hình của gateway',
    open: 'Mở',
    console: 'Trang quản trị',
    docs: 'API',
    forSandboxes: 'Trang này dành cho môi trường thử nghiệm',
    liveText:
      'Gateway này đang chạy thật, nhận tiền thật, nên không thể thanh toán bằng một nút bấm. Hãy mở trang này ở môi trường thử nghiệm, ví dụ:',
    emptyTitle: 'Còn thiếu',
    emptyText:
      'Gateway này chưa có đối tác với tài khoản liên kết với một thiết bị. Hãy thêm tại trang quản trị, hoặc chạy bản demo:',
    screenTitle: 'Màn hình thiết bị',
    screenAlt: 'Màn hình thiết bị',
    qrAlt: 'Mã QR của đơn hàng',
    online: 'đang kết nối',
    offline: 'mất kết nối',
    noBox: 'Thiết bị chưa kết nối. Hãy bật một thiết bị, ví dụ bản demo:',
    noPicture: 'Ở đây không có hình của thiết bị này. Mã QR của đơn hàng sẽ hiện thay vào đó.',
    paidPicture: 'Đã thanh toán',
    boxPage: 'Mở trang của thiết bị',
    pushTitle: 'Gửi đơn hàng',
    pushText: 'Cửa hàng cần thu tiền một đơn hàng. Chương trình gửi số tiền, thiết bị hiện mã QR đúng số tiền đó.',
    amount: 'Số tiền (đồng)',
    content: 'Nội dung',
    password: 'Mật khẩu của đối tác',
    push: 'Hiện mã QR',
    pushed: (box) => `${box} đang hiện mã QR.`,
    pushedUnconfirmed: (box) => `Đã gửi tới ${box}.`,
    payTitle: 'Thanh toán',
    payText:
      'Giờ bạn là khách. Thật ra khách quét mã QR bằng ứng dụng ngân hàng; ở đây môi trường thử nghiệm đóng vai ngân hàng.',
    pay: (amount) => `Trả ${amount}`,
    payFirst: 'Hãy gửi đơn hàng trước',
    paid: 'Đã thanh toán. Thiết bị báo đúng một lần.',
    callbackTitle: 'Callback',
    callbackText:
      'Dịch vụ báo cho chương trình của cửa hàng biết đã có tiền: một yêu cầu HTTP tới địa chỉ của cửa hàng, gửi lại cho đến khi được trả lời.',
    callbackWaits: 'Callback được gửi khi đơn hàng đã thanh toán.',
    noCallback:
      'Chưa có địa chỉ callback nên chưa báo cho ai. Hãy khai báo địa chỉ chương trình của bạn cho bản demo, hoặc cho đối tác trong tệp cấu hình của gateway:',
    noAnswer: 'không trả lời',
    emptyAnswer: '(trả lời trống)',
    sent: 'đã gửi',
    answered: 'trả lời',
    delivered: 'đã nhận',
    pending: 'sẽ gửi lại',
    failed: 'thất bại',
    commands: 'Làm bằng curl',
    shellHint: 'Dùng trong shell của macOS và Linux; trên Windows dùng WSL. $TOKEN và $QR lấy từ các lệnh phía trước.',
    tokenCommand: 'Lấy token, dùng được 300 giây',
    generateCommand: 'Tạo mã QR cho đơn hàng',
    sendCommand: (box) => `Gửi tới thiết bị ${box}`,
    payCommand: 'Khách thanh toán',
    listCommand: 'Callback mới nhất, với mọi lần gửi',
    boxCommand: 'Xem thiết bị có kết nối không',
    demoCommand: 'Bản demo',
    fileCommand: 'Tệp cấu hình của gateway',
    playCommand: 'Tự gửi callback này tới địa chỉ của bạn',
    copy: 'Chép',
    copied: 'đã chép',
    done: 'xong',
    lost: 'Gateway không trả lời.',
    refused: (code) => `Bị từ chối, mã ${code}.`,
    refusals: {
      E02: 'Số tiền phải là số nguyên từ 1 đến 9.999.999.999.999.',
      E46: 'Đơn hàng không đúng quy định.',
      E26: 'Nội dung quá dài.',
      E34: 'Nội dung có ký tự mà mã QR không chứa được: hãy dùng chữ không dấu, số và dấu cách.',
      '009': 'Nội dung có ký tự mà lệnh trả thử không nhận: hãy dùng chữ, số và dấu cách.',
      E74: 'Mật khẩu của đối tác không đúng.',
      BOX_OFFLINE: 'Thiết bị chưa kết nối nên không hiện gì. Mã QR vẫn có, và đơn hàng vẫn có thể thanh toán.',
    },
  },
};

const KEPT = 'language';

/** Returns `vi` or `en`: the language that was chosen on the page, or else that of the browser. */
export function language() {
  const kept = localStorage.getItem(KEPT);
  return kept !== null && kept in WORDS ? kept : navigator.language.startsWith('vi') ? 'vi' : 'en';
}

export const words = () => WORDS[language()];

/** Writes the words of the language into all elements that name one in `data-text`. */
export function translate() {
  document.documentElement.lang = language();
  document.title = `paybox: ${words().title}`;
  for (const it of document.querySelectorAll('[data-text]')) it.textContent = words()[it.dataset.text];
  for (const it of document.querySelectorAll('[data-language]')) {
    it.setAttribute('aria-pressed', String(it.dataset.language === language()));
  }
}

/** Starts the language switch of the page. `changed` draws everything that is not in `data-text` again. */
export function startLanguages(changed) {
  for (const it of document.querySelectorAll('[data-language]')) {
    it.addEventListener('click', () => {
      localStorage.setItem(KEPT, it.dataset.language);
      translate();
      changed();
    });
  }
  translate();
}
