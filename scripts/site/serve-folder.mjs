import { readFile } from 'node:fs/promises'
import { createServer } from 'node:http'
import { extname, join, normalize } from 'node:path'

const TYPES = {
  '.html': 'text/html; charset=utf-8',
  '.js': 'text/javascript',
  '.css': 'text/css',
  '.json': 'application/json',
  '.svg': 'image/svg+xml',
  '.png': 'image/png',
  '.jpg': 'image/jpeg',
  '.woff2': 'font/woff2',
}

/**
 * Serves the files of a folder on this machine alone.
 *
 * @param {number} port - 0 for a free one.
 * @param {string} start - where `/` leads, e.g. /docs/.
 * @returns {Promise<import('node:http').Server>} listens.
 */
export async function serveFolder(folder, port, start = '/') {
  const server = createServer((request, response) => {
    void answerTo(folder, request.url ?? '/', start).then((answer) =>
      response.writeHead(answer.status, answer.headers).end(answer.body),
    )
  })
  await new Promise((settle, fail) => server.once('error', fail).listen(port, '127.0.0.1', settle))
  return server
}

async function answerTo(folder, url, start) {
  const none = { status: 404, headers: {}, body: '' }
  const path = decode(new URL(url, 'http://localhost').pathname)
  if (path === undefined) return none
  if (path === '/' && start !== '/') return { status: 302, headers: { location: start }, body: '' }
  const name = normalize(path)
  const file = join(folder, name.endsWith('/') ? `${name}index.html` : name)
  const body = await readFile(file).catch(() => undefined)
  if (body === undefined) return none
  return { status: 200, headers: { 'content-type': TYPES[extname(file)] ?? 'text/plain' }, body }
}

function decode(path) {
  try {
    return decodeURIComponent(path)
  } catch {
    return undefined
  }
}
