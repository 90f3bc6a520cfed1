import type { IncomingMessage } from 'node:http'
import { Agent, request } from 'node:https'
import { createInterface } from 'node:readline'
import { text } from 'node:stream/consumers'

/** Objects as they come, for tests that look at anything in them. */
// oxlint-disable-next-line typescript/no-explicit-any -- a test's own assertions are the check
export type PlainObject = Record<string, any>

export interface PlainAnswer {
  readonly status: number
  readonly body: PlainObject
}

export interface PlainRequest {
  readonly body?: unknown
  /** Content type of the body; default: `application/json`, for PATCH `application/merge-patch+json`. */
  readonly contentType?: string
}

export type PlainClient = ReturnType<typeof plainClient>

export interface PlainAccess {
  readonly url: URL
  /** PEM. */
  readonly ca: string
  readonly token: string
}

/** Less than servers wait for the next request of a connection: none is sent on one that is being closed. */
const IDLE_MS = 30_000

/**
 * Makes a client of an API server without any code of ours, so that tests can compare our client with it. Paths are those of the
 * REST API, with their query: `/api/v1/namespaces/default/pods/x`. The caller closes the client.
 */
export function plainClient(o: PlainAccess) {
  const access = { ...o, agent: new Agent({ keepAlive: true, timeout: IDLE_MS }) }
  const send = async (method: string, path: string, o: PlainRequest = {}): Promise<PlainAnswer> => {
    const response = await open(access, method, path, o)
    return { status: response.statusCode ?? 0, body: parse(await text(response)) }
  }
  const must = async (method: string, path: string, o?: PlainRequest): Promise<PlainObject> => {
    const { status, body } = await send(method, path, o)
    if (status >= 200 && status < 300) return body
    throw new Error(`${method} ${path}: ${status} ${JSON.stringify(body)}`)
  }
  return {
    /** Sends a request and returns every answer, errors too. */
    send,
    /** Reads an object. This and the methods below throw an Error for a status other than 2xx. */
    get: (path: string): Promise<PlainObject> => must('GET', path),
    /** Reads the items of a list. */
    list: async (path: string): Promise<PlainObject[]> => (await must('GET', path))['items'] ?? [],
    create: (path: string, object: PlainObject): Promise<PlainObject> =>
      must('POST', path, { body: object }),
    /** Applies an object on the server's side, with force. */
    apply: (path: string, object: PlainObject, fieldManager = 'kubectl'): Promise<PlainObject> => {
      const query = `fieldManager=${fieldManager}&force=true&fieldValidation=Strict`
      const contentType = 'application/apply-patch+yaml'
      return must('PATCH', `${path}?${query}`, { body: object, contentType })
    },
    /** Sends a merge patch. */
    patch: (path: string, patch: PlainObject): Promise<PlainObject> =>
      must('PATCH', path, { body: patch }),
    /** Deletes an object, which may be gone already. */
    delete: async (path: string, options?: PlainObject): Promise<void> => {
      const { status, body } = await send('DELETE', path, { body: options })
      if (status !== 404 && status >= 300) {
        throw new Error(`DELETE ${path}: ${status} ${JSON.stringify(body)}`)
      }
    },
    /** Closes the connections of the client. */
    close: (): void => access.agent.destroy(),
    /**
     * Watches one object until it fits, and returns it. An object that does not exist is `undefined`.
     *
     * @throws Error with the object as it was last, after `timeoutMs`.
     */
    until: (path: string, fits: Until['fits'], timeoutMs = 240_000) =>
      watchUntil(access, { path, fits, timeoutMs, send }),
    /**
     * Reads a list again whenever something in it has changed, until it fits. @param path - with a query, e.g. `?labelSelector=`.
     *
     * @throws Error that names the objects in the list, after `timeoutMs`.
     */
    untilList: (path: string, fits: UntilList['fits'], timeoutMs = 240_000) =>
      watchListUntil(access, { path, fits, timeoutMs, get: (path) => must('GET', path) }),
  }
}

interface Until {
  readonly path: string
  readonly fits: (object: PlainObject | undefined) => boolean
  readonly timeoutMs: number
  readonly send: (method: string, path: string) => Promise<PlainAnswer>
}

async function watchUntil(access: Access, o: Until): Promise<PlainObject | undefined> {
  const limit = AbortSignal.timeout(o.timeoutMs)
  const at = o.path.lastIndexOf('/')
  const collection = o.path.slice(0, at)
  const query = `fieldSelector=metadata.name%3D${o.path.slice(at + 1)}`
  let last: PlainObject | undefined
  try {
    for (;;) {
      limit.throwIfAborted()
      const { body: list } = await o.send('GET', `${collection}?${query}`)
      last = itemOf(list)
      if (o.fits(last)) return last
      // From the list of this one object on: what comes between reading and watching is not missed.
      const version = list['metadata']?.resourceVersion
      const watch = `${collection}?watch=1&${query}&resourceVersion=${version}`
      const response = await open(access, 'GET', watch, { signal: limit })
      for await (const now of changesOf(response)) {
        last = now
        if (o.fits(last)) return last
      }
    }
  } catch (error) {
    if (!limit.aborted) throw error
    throw new Error(
      `${o.path} did not come to fit within ${o.timeoutMs} ms; it is ${JSON.stringify(last)}`,
      { cause: error },
    )
  }
}

interface UntilList {
  readonly path: string
  readonly fits: (items: readonly PlainObject[]) => boolean
  readonly timeoutMs: number
  readonly get: (path: string) => Promise<PlainObject>
}

async function watchListUntil(access: Access, o: UntilList): Promise<void> {
  const limit = AbortSignal.timeout(o.timeoutMs)
  let items: readonly PlainObject[] = []
  try {
    for (;;) {
      limit.throwIfAborted()
      const list = await o.get(o.path)
      items = list['items'] ?? []
      if (o.fits(items)) return
      // From the list on: what comes between reading and watching is not missed.
      const watch = `${o.path}&watch=1&resourceVersion=${list['metadata'].resourceVersion}`
      const changes = changesOf(await open(access, 'GET', watch, { signal: limit }))
      await changes.next()
      await changes.return(undefined)
    }
  } catch (error) {
    if (!limit.aborted) throw error
    const names = items.map(({ metadata }) => String(metadata.name)).join(', ')
    const within = `within ${o.timeoutMs} ms`
    throw new Error(`${o.path} did not come to fit ${within}; it has ${names || 'nothing'}`, {
      cause: error,
    })
  }
}

/** Items of lists lack what their list says of them all. */
function itemOf({ apiVersion, kind, items }: PlainObject): PlainObject | undefined {
  const [item] = items ?? []
  return item && { apiVersion, kind: String(kind).replace(/List$/, ''), ...item }
}

/** Yields what a watch of one object says, until it ends or cannot go on. */
async function* changesOf(
  response: IncomingMessage,
): AsyncGenerator<PlainObject | undefined, void> {
  try {
    for await (const line of createInterface({ input: response })) {
      const { type, object } = JSON.parse(line)
      if (type === 'DELETED') yield undefined
      else if (type === 'ADDED' || type === 'MODIFIED') yield object
      else return
    }
  } finally {
    response.destroy()
  }
}

type Access = PlainAccess & { readonly agent: Agent }

function open(
  access: Access,
  method: string,
  path: string,
  o: PlainRequest & { readonly signal?: AbortSignal },
): Promise<IncomingMessage> {
  const body = o.body === undefined ? undefined : JSON.stringify(o.body)
  const patchType = method === 'PATCH' ? 'application/merge-patch+json' : 'application/json'
  return new Promise((resolve, reject) => {
    const sent = request(new URL(path, access.url), {
      method,
      ca: access.ca,
      agent: access.agent,
      ...(o.signal && { signal: o.signal }),
      headers: {
        authorization: `Bearer ${access.token}`,
        accept: 'application/json',
        ...(body !== undefined && {
          'content-type': o.contentType ?? patchType,
          // Node sends none with a DELETE, and the server then reads no body.
          'content-length': Buffer.byteLength(body),
        }),
      },
    })
    sent.once('response', resolve)
    sent.on('error', reject)
    sent.end(body)
  })
}

function parse(body: string): PlainObject {
  try {
    return JSON.parse(body)
  } catch {
    // `/readyz` and the like answer with plain text.
    return { text: body }
  }
}
