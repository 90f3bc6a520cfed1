import { createHash } from 'node:crypto'
import type { IncomingMessage, ServerResponse } from 'node:http'
import { type Answer, startArtifactServer } from './artifact-server.ts'

export type ScriptedHub = Awaited<ReturnType<typeof startScriptedHub>>

const sha = (kind: 'sha1' | 'sha256', ...parts: readonly (string | Uint8Array)[]): string =>
  parts
    .reduce<ReturnType<typeof createHash>>((hash, part) => hash.update(part), createHash(kind))
    .digest('hex')

/** Sends bytes of a file from where a request wants them. */
export function serveRange(
  { headers }: IncomingMessage,
  response: ServerResponse,
  bytes: Uint8Array,
): void {
  const from = Number(/^bytes=(\d+)-$/.exec(headers.range ?? '')?.[1] ?? 0)
  const range = { 'content-range': `bytes ${from}-${bytes.byteLength - 1}/${bytes.byteLength}` }
  response.writeHead(from === 0 ? 200 : 206, {
    ...(from > 0 && range),
    'content-length': bytes.byteLength - from,
  })
  response.end(bytes.subarray(from))
}

/**
 * Starts a server that speaks the part of the Hub of Hugging Face that a fetch needs: revisions, lists of files in pages, and files,
 * to which it leads on another server if they are large.
 */
export async function startScriptedHub(
  o: { readonly repository?: string; readonly token?: string } = {},
) {
  const { repository = 'owner/name', token } = o
  const hub = {
    /** Files of the repository; those of more than 100 bytes are in LFS. */
    files: new Map<string, string | Uint8Array>(),
    commit: sha('sha1', 'first'),
    /** Entries of a page; the Hub has 1000. */
    pageSize: 1000,
    /** Answers that the next requests get instead. */
    faults: [] as Answer[],
    /** Answers that the next requests of large files get instead. */
    storeFaults: [] as Answer[],
  }
  const store = await startArtifactServer((request, response) => {
    const fault = hub.storeFaults.shift()
    if (fault !== undefined) return fault(request, response)
    const path = decodeURIComponent(new URL(request.url ?? '', 'http://x').pathname.slice(1))
    return serveRange(request, response, Buffer.from(hub.files.get(path) ?? ''))
  })
  const server = await startArtifactServer((request, response) => {
    const fault = hub.faults.shift()
    if (fault !== undefined) return fault(request, response)
    if (token !== undefined && request.headers.authorization !== `Bearer ${token}`) {
      const error = {
        'x-error-code': 'RepoNotFound',
        'x-error-message': 'Invalid username or password.',
      }
      return response.writeHead(401, error).end()
    }
    return answer(request, response)
  })
  const answer = (request: IncomingMessage, response: ServerResponse): unknown => {
    const url = new URL(request.url ?? '', 'http://x')
    const path = decodeURIComponent(url.pathname)
    const api = `/api/models/${repository}`
    const files = `/${repository}/resolve/${hub.commit}/`
    if (path === `${api}/revision/main`) return sendJson(response, { sha: hub.commit })
    const tree = `${api}/tree/${hub.commit}`
    if (path.startsWith(tree)) return list(path.slice(tree.length + 1), url, response)
    const content = path.startsWith(files) ? hub.files.get(path.slice(files.length)) : undefined
    if (content === undefined) {
      return response.writeHead(404, { 'x-error-message': 'Entry not found' }).end()
    }
    const bytes = Buffer.from(content)
    if (bytes.byteLength <= 100) return serveRange(request, response, bytes)
    const location = `${store.origin}/${path.slice(files.length)}?signature=hidden`
    return response.writeHead(302, { location }).end()
  }
  const list = (folder: string, url: URL, response: ServerResponse): unknown => {
    const isDeep = url.searchParams.get('recursive') === 'true'
    const prefix = folder === '' ? '' : `${folder}/`
    const found = [...hub.files].filter(
      ([path]) => path.startsWith(prefix) && (isDeep || !path.slice(prefix.length).includes('/')),
    )
    const begin = Number(url.searchParams.get('cursor') ?? 0)
    const end = begin + hub.pageSize
    // As a mirror does that leaves the addresses of the Hub in its answers.
    const link = `<https://huggingface.co${url.pathname}?recursive=${isDeep}&cursor=${end}>; rel="next"`
    const entries = found.slice(begin, end).map(([path, content]) => toEntry(path, content))
    const folders = [{ type: 'directory', oid: sha('sha1', 'x'), size: 0, path: `${prefix}folder` }]
    if (found.length === 0) return response.writeHead(404, { 'x-error-message': 'none' }).end()
    return sendJson(response, [...folders, ...entries], end < found.length ? { link } : {})
  }
  return {
    hub,
    store,
    server,
    endpoint: new URL(server.origin),
    close: async () => {
      await server.close()
      await store.close()
    },
  }
}

function toEntry(path: string, content: string | Uint8Array) {
  const size = Buffer.byteLength(content)
  const pointer = { type: 'file', path, size, oid: sha('sha1', `blob ${size}\0`, content) }
  const isLarge = size > 100
  return isLarge
    ? {
        ...pointer,
        oid: sha('sha1', 'pointer'),
        lfs: { oid: sha('sha256', content), size, pointerSize: 134 },
      }
    : pointer
}

function sendJson(
  response: ServerResponse,
  value: unknown,
  headers: Readonly<Record<string, string>> = {},
): void {
  response.writeHead(200, { 'content-type': 'application/json', ...headers })
  response.end(JSON.stringify(value))
}
