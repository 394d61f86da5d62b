const POLL_MS = 1000;
const screenImage = document.getElementById('screen');
const lost = document.getElementById('lost');
let etag = '';

/** Loads the current picture. The answer is empty when nothing changed. */
async function look() {
  try {
    const answer = await fetch('/screen.png', { headers: etag === '' ? {} : { 'if-none-match': etag } });
    if (answer.status === 304) return;
    if (!answer.ok) throw new Error(await answer.text());
    const reader = new FileReader();
    reader.onload = () => {
      screenImage.src = reader.result;
      screenImage.hidden = false;
    };
    reader.readAsDataURL(await answer.blob());
    lost.textContent = '';
    etag = answer.headers.get('etag') ?? '';
  } catch (error) {
    // After the box has ended nobody may pay its QR.
    screenImage.hidden = true;
    etag = '';
    lost.textContent = error instanceof TypeError ? 'box not reachable' : error.message;
  } finally {
    setTimeout(look, POLL_MS);
  }
}
look();
