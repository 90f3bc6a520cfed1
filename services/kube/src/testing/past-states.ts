import type { ServerResponse } from 'node:http'
import type { ProxiedRequest } from './fault-rules.ts'
import type { PlainClient, PlainObject } from './plain-client.ts'

/** Complete lists as they were at one time, by path and selectors. */
export type PastState = ReadonlyMap<string, PlainObject>

export type PastStates = ReturnType<typeof createPastStates>

/** Remembers states of watched objects, and answers requests with a past state. @param client - reads the states. */
export function createPastStates(client: PlainClient) {
  const watched = new Map<ServerResponse, string>()
  const held = new Set<ServerResponse>()
  let past: PastState = new Map()
  return {
    /** Notes a watch that is passed on. While the watch is open, `remember` reads the state of its objects. */
    track: (request: ProxiedRequest, response: ServerResponse): void => {
      watched.set(response, collectionOf(request))
      response.once('close', () => watched.delete(response))
    },
    remember: async (): Promise<PastState> => {
      const state = new Map<string, PlainObject>()
      for (const collection of new Set(watched.values())) {
        state.set(collection, await client.get(collection))
      }
      return state
    },
    rewind: (state: PastState): void => {
      past = state
    },
    present: (): void => {
      past = new Map()
      for (const response of held) response.end()
    },
    /** Answers a request with a past state, if there is one. @returns false if the request must be passed on. */
    answer: (request: ProxiedRequest, response: ServerResponse): boolean => {
      const list = request.method === 'GET' ? past.get(collectionOf(request)) : undefined
      // A list that names no version is read from etcd: it is never behind.
      const isConsistent = !request.isWatch && !request.query.has('resourceVersion')
      if (list === undefined || isConsistent) return false
      const isInitial = request.query.get('sendInitialEvents') === 'true'
      response.writeHead(200, { 'content-type': 'application/json' })
      if (!request.isWatch) {
        response.end(JSON.stringify(list))
        return true
      }
      held.add(response)
      response.once('close', () => held.delete(response))
      response.flushHeaders()
      if (isInitial) response.write(toEvents(list))
      return true
    },
    /** Number of open watches that got a past state. */
    get watches() {
      return held.size
    },
  }
}

/** The list that a request asks for, as path and query. */
function collectionOf(request: ProxiedRequest): string {
  const query = new URLSearchParams()
  for (const name of ['labelSelector', 'fieldSelector']) {
    const value = request.query.get(name)
    if (value !== null) query.set(name, value)
  }
  return `${request.path}?${query.toString()}`
}

/** The lines of a WatchList. */
function toEvents(list: PlainObject): string {
  const { apiVersion, kind, metadata } = list
  const itemKind = String(kind).replace(/List$/, '')
  const items: PlainObject[] = list['items'] ?? []
  const added = items.map((item) => ({
    type: 'ADDED',
    object: { apiVersion, kind: itemKind, ...item },
  }))
  const end = {
    type: 'BOOKMARK',
    object: {
      apiVersion,
      kind: itemKind,
      metadata: {
        resourceVersion: metadata.resourceVersion,
        annotations: { 'k8s.io/initial-events-end': 'true' },
      },
    },
  }
  return [...added, end].map((event) => `${JSON.stringify(event)}\n`).join('')
}
