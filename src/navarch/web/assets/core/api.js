// Requests to the JSON API. Addresses are relative, so the page works below any prefix. The cookie of the page is the credential.

export class ApiError extends Error {
  constructor(status, message, near = []) {
    super(message);
    this.status = status;
    this.near = near; // names that are spelt alike
  }
}

export async function get(path, query = {}, signal = undefined) {
  return answer(await fetch(url(path, query), { signal, headers: { accept: "application/json" }, credentials: "same-origin" }));
}

export async function post(path, body = {}) {
  return answer(
    await fetch(url(path), {
      method: "POST",
      headers: { accept: "application/json", "content-type": "application/json" },
      credentials: "same-origin",
      body: JSON.stringify(body),
    }),
  );
}

// Turns a token into the cookie of this browser.
export async function logIn(token) {
  const headers = { accept: "application/json", "content-type": "application/json" };
  return answer(await fetch("login", { method: "POST", headers, credentials: "same-origin", body: JSON.stringify({ token }) }));
}

// "jobs" and ["jobs", "ns", "name"] both name a resource; each part is encoded.
export function url(path, query = {}) {
  const parts = Array.isArray(path) ? path.map(encodeURIComponent).join("/") : path;
  const kept = Object.entries(query).filter(([, value]) => value !== "" && value !== null && value !== undefined);
  const search = new URLSearchParams(kept).toString();
  return `api/v1/${parts}${search ? "?" + search : ""}`;
}

async function answer(response) {
  const isJson = (response.headers.get("content-type") ?? "").includes("json");
  const body = isJson ? await response.json() : null;
  if (response.ok) return body;
  const said = body?.error?.message ?? body?.message ?? body?.error;
  throw new ApiError(response.status, typeof said === "string" && said ? said : `the server answered ${response.status}`, body?.error?.near);
}
