// Asks for a token where the server does not know the reader: the printed one, or a bearer token of the cluster.
import { html, useState } from "../core/dom.js";
import { logIn } from "../core/api.js";

export function Login({ reason }) {
  const [token, setToken] = useState("");
  const [refused, setRefused] = useState("");
  const send = async (event) => {
    event.preventDefault();
    try {
      await logIn(token.trim());
      location.reload(); // every part of the page loads with the new cookie
    } catch (error) {
      setRefused(error.message);
    }
  };
  return html`
    <form class="panel stack login" onSubmit=${send} aria-label="Log in">
      <h2>Log in</h2>
      <p role="alert">This page has no valid token: ${reason}.</p>
      <label class="row">Token <input type="password" autocomplete="off" required value=${token}
        onInput=${(event) => setToken(event.currentTarget.value)} />
        </label>
      <div class="row"><button type="submit" class="primary">Log in</button></div>
      ${refused && html`<p class="notice bad" role="alert">${refused}</p>`}
    </form>`;
}
