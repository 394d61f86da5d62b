const problem = document.getElementById('problem');

document.getElementById('login').addEventListener('submit', async (event) => {
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
