import type {
  ApplyOptions,
  CallOptions,
  Client,
  DeleteOptions,
  JsonPatch,
  ListOptions,
  ObjectList,
  PatchOptions,
  Scale,
  SetScaleOptions,
  Watch,
  WatchOptions,
  WriteOptions,
} from './client.ts'
import { isExpired, KubeError } from './kube-error.ts'
import {
  type Desired,
  type JsonObject,
  type KubeObject,
  keyOf,
  type ObjectKey,
  type Stored,
} from './object.ts'
import { isRecord, toList, toStored } from './parse-object.ts'
import { apiVersionOf, collectionPath, groupPath, objectPath, type Resource } from './resource.ts'
import type { Method, Query, Transport } from './transport/transport.ts'
import { readEvents } from './watch/read-events.ts'

const PAGE_SIZE = 500

/** Makes a client that sends its requests by `transport`, which stays the caller's to close. */
export function createClient(transport: Transport): Client {
  return new TransportClient(transport)
}

/** A write as it goes out. */
interface Write {
  readonly method: Method
  readonly path: string
  readonly body: unknown
  readonly contentType?: string
  readonly query?: Query
  readonly isIdempotent?: boolean
  readonly options: WriteOptions
}

class TransportClient implements Client {
  readonly #transport: Transport

  constructor(transport: Transport) {
    this.#transport = transport
  }

  async get<T extends KubeObject>(
    resource: Resource<T>,
    key: ObjectKey,
    o: CallOptions = {},
  ): Promise<Stored<T>> {
    const path = objectPath(resource, key)
    const { body } = await this.#transport.request({ method: 'GET', path, ...limits(o) })
    return toStored<T>(body, path)
  }

  async list<T extends KubeObject>(
    resource: Resource<T>,
    o: ListOptions = {},
  ): Promise<ObjectList<T>> {
    try {
      return await this.#listOnce(resource, o)
    } catch (error) {
      if (!isExpired(error)) throw error
      return await this.#listOnce(resource, o)
    }
  }

  async #listOnce<T extends KubeObject>(
    resource: Resource<T>,
    o: ListOptions,
  ): Promise<ObjectList<T>> {
    const path = collectionPath(resource, o.namespace)
    const items: Stored<T>[] = []
    for (let token = ''; ; ) {
      const { body } = await this.#transport.request({
        method: 'GET',
        path,
        query: {
          limit: o.pageSize ?? PAGE_SIZE,
          labelSelector: o.labelSelector,
          fieldSelector: o.fieldSelector,
          continue: token === '' ? undefined : token,
        },
        ...limits(o),
      })
      const page = toList<T>(body, resource, path)
      for (const item of page.items) items.push(item)
      if (page.next === '') return { items, resourceVersion: page.resourceVersion }
      token = page.next
    }
  }

  create<T extends KubeObject>(
    resource: Resource<T>,
    object: NoInfer<Desired<T>>,
    o: WriteOptions,
  ): Promise<Stored<T>> {
    const path = collectionPath(resource, object.metadata.namespace)
    return this.#write<T>({ method: 'POST', path, body: typed(resource, object), options: o })
  }

  apply<T extends KubeObject>(
    resource: Resource<T>,
    object: NoInfer<Desired<T>>,
    o: ApplyOptions,
  ): Promise<Stored<T>> {
    return this.#apply(resource, object, objectPath(resource, keyOf(object)), o)
  }

  applyStatus<T extends KubeObject>(
    resource: Resource<T>,
    object: NoInfer<Desired<T>>,
    o: ApplyOptions,
  ): Promise<Stored<T>> {
    return this.#apply(resource, object, objectPath(resource, keyOf(object), 'status'), o)
  }

  #apply<T extends KubeObject>(
    resource: Resource<T>,
    object: { readonly metadata: { readonly uid?: string } },
    path: string,
    o: ApplyOptions,
  ): Promise<Stored<T>> {
    return this.#write<T>({
      method: 'PATCH',
      path,
      body: typed(resource, object),
      contentType: 'application/apply-patch+yaml',
      query: { force: o.isForced ?? true },
      // Without a uid the second one could make an object anew that was deleted after the first.
      isIdempotent: object.metadata.uid !== undefined || path.endsWith('/status'),
      options: o,
    })
  }

  async getScale(resource: Resource, key: ObjectKey, o: CallOptions = {}): Promise<Scale> {
    const path = objectPath(resource, key, 'scale')
    const { body } = await this.#transport.request({ method: 'GET', path, ...limits(o) })
    return toScale(body, path)
  }

  async setScale(resource: Resource, key: ObjectKey, o: SetScaleOptions): Promise<Scale> {
    const path = objectPath(resource, key, 'scale')
    const patch = { spec: { replicas: o.replicas } }
    return toScale(await this.#sendPatch(path, patch, 'merge', o), path)
  }

  replace<T extends KubeObject>(
    resource: Resource<T>,
    object: NoInfer<T>,
    o: WriteOptions,
  ): Promise<Stored<T>> {
    const path = objectPath(resource, keyOf(object))
    return this.#write<T>({ method: 'PUT', path, body: typed(resource, object), options: o })
  }

  mergePatch<T extends KubeObject>(
    resource: Resource<T>,
    key: ObjectKey,
    o: PatchOptions & { readonly patch: JsonObject },
  ): Promise<Stored<T>> {
    return this.#patch<T>('merge', objectPath(resource, key, o.subresource), o)
  }

  jsonPatch<T extends KubeObject>(
    resource: Resource<T>,
    key: ObjectKey,
    o: PatchOptions & { readonly patch: JsonPatch },
  ): Promise<Stored<T>> {
    return this.#patch<T>('json', objectPath(resource, key, o.subresource), o)
  }

  async #patch<T extends KubeObject>(
    type: 'merge' | 'json',
    path: string,
    o: PatchOptions & { readonly patch: unknown },
  ): Promise<Stored<T>> {
    return toStored<T>(await this.#sendPatch(path, o.patch, type, o), path)
  }

  #sendPatch(
    path: string,
    body: unknown,
    type: 'merge' | 'json',
    options: WriteOptions,
  ): Promise<unknown> {
    const contentType = `application/${type}-patch+json`
    return this.#send({ method: 'PATCH', path, body, contentType, options })
  }

  async delete(resource: Resource, key: ObjectKey, o: DeleteOptions = {}): Promise<void> {
    const { preconditions, propagation, gracePeriodSeconds } = o
    await this.#transport.request({
      method: 'DELETE',
      path: objectPath(resource, key),
      body: {
        apiVersion: 'v1',
        kind: 'DeleteOptions',
        preconditions,
        propagationPolicy: propagation,
        gracePeriodSeconds,
      },
      isIdempotent: preconditions?.uid !== undefined,
      ...limits(o),
    })
  }

  async watch<T extends KubeObject>(resource: Resource<T>, o: WatchOptions): Promise<Watch<T>> {
    const path = collectionPath(resource, o.namespace)
    const stream = await this.#transport.stream({
      method: 'GET',
      path,
      query: {
        watch: 1,
        allowWatchBookmarks: true,
        labelSelector: o.labelSelector,
        fieldSelector: o.fieldSelector,
        timeoutSeconds: o.timeoutSeconds,
        resourceVersion: o.resourceVersion === '' ? undefined : o.resourceVersion,
        ...(o.isInitial && { sendInitialEvents: true, resourceVersionMatch: 'NotOlderThan' }),
      },
      idleMs: o.idleMs,
      // Whoever watches has a way of its own to come back.
      isIdempotent: false,
      ...(o.signal && { signal: o.signal }),
    })
    return { events: readEvents<T>(stream.lines, path), close: () => stream.close() }
  }

  async serves(resource: Resource, o: CallOptions = {}): Promise<boolean> {
    const path = groupPath(resource)
    try {
      const { body } = await this.#transport.request({ method: 'GET', path, ...limits(o) })
      const resources: unknown = isRecord(body) ? body['resources'] : undefined
      if (!Array.isArray(resources)) return false
      return resources.some((entry) => isRecord(entry) && entry['name'] === resource.plural)
    } catch (error) {
      if (error instanceof KubeError && error.status === 404) return false
      throw error
    }
  }

  async #write<T extends KubeObject>(o: Write): Promise<Stored<T>> {
    return toStored<T>(await this.#send(o), o.path)
  }

  async #send(o: Write): Promise<unknown> {
    const { fieldManager, isDryRun, ...rest } = o.options
    const { body } = await this.#transport.request({
      method: o.method,
      path: o.path,
      body: o.body,
      ...(o.contentType !== undefined && { contentType: o.contentType }),
      query: {
        ...o.query,
        fieldManager,
        fieldValidation: 'Strict',
        dryRun: isDryRun ? 'All' : undefined,
      },
      isIdempotent: o.isIdempotent ?? false,
      ...limits(rest),
    })
    return body
  }
}

function typed(resource: Resource, object: object): unknown {
  return { ...object, apiVersion: apiVersionOf(resource), kind: resource.kind }
}

function limits(o: CallOptions): CallOptions {
  const { signal, timeoutMs } = o
  return { ...(signal && { signal }), ...(timeoutMs !== undefined && { timeoutMs }) }
}

function toScale(body: unknown, path: string): Scale {
  const { spec, status } = isRecord(body) ? body : {}
  const wanted = isRecord(spec) ? spec['replicas'] : undefined
  const { replicas, selector } = isRecord(status) ? status : {}
  if (!isRecord(status)) {
    throw new KubeError({
      status: 0,
      reason: 'BadResponse',
      message: `${path}: the answer is no Scale`,
    })
  }
  // Zero is left out.
  return {
    spec: { replicas: typeof wanted === 'number' ? wanted : 0 },
    status: {
      replicas: typeof replicas === 'number' ? replicas : 0,
      ...(typeof selector === 'string' && { selector }),
    },
  }
}
