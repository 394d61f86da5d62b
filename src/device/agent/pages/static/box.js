const part = (id) => document.getElementById(id);
const say = (id, text) => {
  part(id).textContent = text || '–';
};
const dong = (amount) => `${String(amount).replace(/\B(?=(\d{3})+$)/g, '.')} ₫`;
const time = (iso) => new Date(iso).toLocaleTimeString([], { hour: '2-digit', minute: '2-digit', second: '2-digit' });

const screenImage = part('screen');
let shownFrame = 0;
let heardSound;
let soundOn = false;

function setLink(kind, text) {
  document.body.dataset.link = kind;
  say('lamp-text', text);
}

function paymentLine({ amount, content, paidAt, late, due }) {
  const rest = due && due.amount - due.paid;
  const parts = [dong(amount), content, time(paidAt)];
  if (rest) parts.push(rest > 0 ? `${dong(rest)} missing` : `${dong(-rest)} too much`);
  if (late) parts.push('late');
  return parts.join(' · ');
}

function show({ frame, sound, status }) {
  setLink(status.online ? 'online' : 'offline', status.online ? 'online' : 'offline');
  say('terminal', status.terminalCode);
  say('serial', status.serialNumber);
  const { order, lastPayment, link, display, fault, enrolment } = status;
  const more = fault === null ? enrolment && `enrol with ${enrolment.code}` : `${fault.code}: ${fault.reason}`;
  say('state', more ? `${status.state} · ${more}` : status.state);
  say('order', order && `${dong(order.amount)} · ${order.content} · until ${time(order.expiresAt)}`);
  say('payment', lastPayment && paymentLine(lastPayment));
  say('link', `${link.reason === null ? link.gateway : link.reason}${link.plain ? ' · not encrypted' : ''}`);
  say('display', `${display.driver} · ${display.ok ? display.surface : display.reason}`);
  part('version').textContent = `paybox ${status.version}`;
  document.title = `${status.terminalCode} · ${status.state}`;
  screenImage.alt = `Screen of the box: ${status.state}${order ? `, ${dong(order.amount)}, ${order.content}` : ''}`;
  if (frame !== shownFrame) loadFrame(frame);
  // The page does not play announcements from before it was opened.
  if (heardSound !== undefined && sound > heardSound && soundOn) play(sound);
  heardSound = sound;
}

/** Browsers play no sound before a user's click, so a button turns the sound on. */
function play(sound) {
  new Audio(`/sound.wav?sound=${sound}`).play().catch(() => setSound(false));
}

function setSound(on) {
  soundOn = on;
  part('sound').setAttribute('aria-pressed', String(on));
}

/** Loads a frame in the background, so that the screen does not flicker. */
function loadFrame(frame) {
  shownFrame = frame;
  const next = new Image();
  next.onload = () => {
    if (frame === shownFrame) screenImage.src = next.src;
  };
  // Nobody knows the content of a failed display.
  next.onerror = () => {
    if (frame !== shownFrame) return;
    screenImage.removeAttribute('src');
    fitScreen();
  };
  next.src = `/screen.png?frame=${frame}`;
}

/**
 * Scales by whole numbers, so that phones can scan the QR from this page. It scales a picture down smoothly that does
 * not fit.
 */
function fitScreen() {
  const { naturalWidth: width, naturalHeight: height } = screenImage;
  screenImage.hidden = width === 0;
  if (width === 0) return;
  const ratio = window.devicePixelRatio || 1;
  const frameWidth = document.querySelector('.face').offsetWidth - part('glass').offsetWidth;
  const roomWide = (document.documentElement.clientWidth - frameWidth - 16) * ratio;
  const roomHigh = (window.innerHeight - 190) * ratio;
  const whole = Math.floor(Math.min(roomWide / width, roomHigh / height));
  const scale = Math.max(whole, Math.min(1, roomWide / width));
  screenImage.classList.toggle('crisp', scale >= 1);
  part('small').hidden = scale >= 1;
  screenImage.style.width = `${(width * scale) / ratio}px`;
  screenImage.style.height = `${(height * scale) / ratio}px`;
}

async function press(name) {
  const key = part(name);
  key.classList.add('pressed');
  try {
    await fetch(`/keys/${name}`, { method: 'POST' });
  } catch {
    setLink('lost', 'lost');
  } finally {
    key.classList.remove('pressed');
  }
}

function watch() {
  const events = new EventSource('/events');
  events.addEventListener('status', (event) => show(JSON.parse(event.data)));
  events.onerror = () => {
    setLink('lost', 'lost');
    shownFrame = 0;
    // After the box has ended nobody may pay its QR, or see it before the first picture of the next start.
    screenImage.removeAttribute('src');
    if (events.readyState === EventSource.CLOSED) setTimeout(watch, 2000);
  };
}

const KEYS = { Escape: 'dismiss', ' ': 'dismiss', r: 'repeat', h: 'history' };

for (const name of ['dismiss', 'repeat', 'history']) part(name).addEventListener('click', () => press(name));
part('sound').addEventListener('click', () => setSound(!soundOn));
document.addEventListener('keydown', (event) => {
  const isTyped = event.key === 'Escape' || event.target === document.body;
  if (!isTyped || event.repeat || event.ctrlKey || event.metaKey || event.altKey) return;
  const name = KEYS[event.key];
  if (name !== undefined) {
    event.preventDefault();
    press(name);
  } else if (event.key === 's') {
    setSound(!soundOn);
  }
});
for (const happening of ['load', 'error']) screenImage.addEventListener(happening, fitScreen);
window.addEventListener('resize', fitScreen);
if (screenImage.complete) fitScreen();
watch();
