import {
  type Client,
  KubeError,
  type KubeObject,
  type ObjectKey,
  type Resource,
  type Stored,
  toKeyString,
} from '@tutti/kube'

/** A call of the memory client. */
export interface ClientCall {
  readonly verb: 'get' | 'list' | 'create' | 'replace' | 'mergePatch' | 'applyStatus' | 'delete'
  readonly kind: string
  readonly key: string
  readonly body?: unknown
}

/** A client over objects in memory, for tests that need a manual clock more than a real server. */
export interface MemoryClient extends Client {
  readonly calls: readonly ClientCall[]
  /** Objects by kind and key: `KIND namespace/name`. */
  readonly objects: ReadonlyMap<string, Stored<KubeObject>>
  /** Hook before each call. The call waits for it and fails with its error; undefined removes it. */
  onCall: ((call: ClientCall) => Promise<void> | void) | undefined
  /** Hook after each call took effect. If it throws, the caller gets the error, as if the answer were lost. */
  onAnswer: ((call: ClientCall) => Promise<void> | void) | undefined
  /** Hook after each stored change, with the new object. */
  onStored: ((resource: Resource, object: Stored<KubeObject>) => void) | undefined
  /** Stores an object as another client would, without a ClientCall. */
  put<T extends KubeObject>(resource: Resource<T>, object: T): void
  remove(resource: Resource, key: ObjectKey): void
}

export function kubeError(status: number, reason: string, message = reason): KubeError {
  return new KubeError({ status, reason, message })
}

function notThere(): never {
  throw new Error('the memory client has no such verb')
}

/** Makes a memory client without objects. It has only the verbs of ClientCall; others throw. */
export function memoryClient(): MemoryClient {
  return new MemoryServer().client()
}

class MemoryServer {
  readonly calls: ClientCall[] = []
  readonly objects = new Map<string, Stored<KubeObject>>()
  #version = 0
  #onStored: (resource: Resource, object: Stored<KubeObject>) => void = () => {}

  client(): MemoryClient {
    const around = async <R>(call: ClientCall, act: () => R): Promise<R> => {
      this.calls.push(call)
      await client.onCall?.(call)
      const result = act()
      await client.onAnswer?.(call)
      return result
    }
    const client = {
      calls: this.calls,
      objects: this.objects,
      onCall: undefined,
      onAnswer: undefined,
      onStored: undefined,
      put: (resource: Resource, object: KubeObject) => void this.#store(resource, object),
      remove: (resource: Resource, key: ObjectKey) => void this.objects.delete(idOf(resource, key)),
      get: (resource: Resource, key: ObjectKey) =>
        around({ verb: 'get', ...nameOf(resource, key) }, () => this.#get(resource, key)),
      list: (resource: Resource, o: { namespace?: string; labelSelector?: string }) =>
        around({ verb: 'list', kind: resource.kind, key: o.namespace ?? '' }, () => ({
          items: this.#list(resource, o),
        })),
      create: (resource: Resource, body: KubeObject) =>
        around({ verb: 'create', ...nameOf(resource, body.metadata), body }, () => {
          if (this.objects.has(idOf(resource, body.metadata))) {
            throw kubeError(409, 'AlreadyExists')
          }
          return this.#store(resource, body)
        }),
      replace: (resource: Resource, body: KubeObject) =>
        around({ verb: 'replace', ...nameOf(resource, body.metadata), body }, () => {
          const old = this.#get(resource, body.metadata)
          if (old.metadata.resourceVersion !== body.metadata.resourceVersion) {
            throw kubeError(409, 'Conflict')
          }
          return this.#store(resource, body)
        }),
      mergePatch: (resource: Resource, key: ObjectKey, { patch }: { patch: Partial<KubeObject> }) =>
        around({ verb: 'mergePatch', ...nameOf(resource, key), body: patch }, () => {
          return this.#store(resource, merge(this.#get(resource, key), patch) as KubeObject)
        }),
      applyStatus: (resource: Resource, body: KubeObject & { status?: unknown }) =>
        around({ verb: 'applyStatus', ...nameOf(resource, body.metadata), body }, () => {
          const old = this.#get(resource, body.metadata)
          const { resourceVersion = old.metadata.resourceVersion } = body.metadata
          if (resourceVersion !== old.metadata.resourceVersion) throw kubeError(409, 'Conflict')
          const changed: KubeObject & { status?: unknown } = { ...old, status: body.status }
          return this.#store(resource, changed)
        }),
      delete: (resource: Resource, key: ObjectKey) =>
        around({ verb: 'delete', ...nameOf(resource, key) }, () => {
          this.#get(resource, key)
          this.objects.delete(idOf(resource, key))
        }),
      apply: notThere,
      watch: notThere,
      serves: notThere,
      tokenIssuer: notThere,
    } as unknown as MemoryClient
    this.#onStored = (resource, object) => client.onStored?.(resource, object)
    return client
  }

  #get(resource: Resource, key: ObjectKey): Stored<KubeObject> {
    const object = this.objects.get(idOf(resource, key))
    if (object === undefined) throw kubeError(404, 'NotFound')
    return object
  }

  /** @param o.labelSelector - of labels and their values, without any other operator. */
  #list(resource: Resource, o: { readonly namespace?: string; readonly labelSelector?: string }) {
    const wanted = (o.labelSelector ?? '').split(',').filter(Boolean)
    const prefix = idOf(resource, { namespace: o.namespace ?? '', name: '' })
    return [...this.objects].flatMap(([id, object]) => {
      const labels = Object.entries(object.metadata.labels ?? {}).map((label) => label.join('='))
      const fits = id.startsWith(prefix) && wanted.every((label) => labels.includes(label))
      return fits ? [object] : []
    })
  }

  #store(resource: Resource, object: KubeObject): Stored<KubeObject> {
    this.#version += 1
    const stored = {
      ...object,
      metadata: {
        uid: `uid-${this.#version}`,
        creationTimestamp: '2026-01-01T00:00:00Z',
        ...object.metadata,
        resourceVersion: String(this.#version),
      },
    }
    this.objects.set(idOf(resource, object.metadata), stored)
    this.#onStored(resource, stored)
    return stored
  }
}

function nameOf(resource: Resource, key: ObjectKey): { kind: string; key: string } {
  return { kind: resource.kind, key: toKeyString(key) }
}

function idOf(resource: Resource, { namespace, name }: ObjectKey): string {
  return `${resource.kind} ${toKeyString(namespace === undefined ? { name } : { namespace, name })}`
}

/** As RFC 7396: null takes a field away. */
function merge(old: unknown, patch: unknown): unknown {
  if (typeof patch !== 'object' || patch === null || Array.isArray(patch)) return patch
  const merged = new Map<string, unknown>(Object.entries(Object(old)))
  for (const [key, value] of Object.entries(patch)) {
    if (value === null) merged.delete(key)
    else merged.set(key, merge(merged.get(key), value))
  }
  return Object.fromEntries(merged)
}
