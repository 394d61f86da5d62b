const form = document.getElementById('login');
const problem = document.getElementById('problem');

form.addEventListener('submit', async (event) => {
  event.preventDefault();
  const token = document.getElementById('token').value.trim();
  try {
    const answer = await fetch('/login', { method: 'POST', headers: { authorization: `Bearer ${token}` } });
    if (answer.ok) location.reload();
    else problem.textContent = await answer.text();
  } catch {
    problem.textContent = 'box not reachable';
  }
});

// The button is disabled until here, because a browser that submits the form by itself only empties it.
form.querySelector('button').disabled = false;
