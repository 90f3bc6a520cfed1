import type {
  CallOptions,
  Client,
  ListOptions,
  ObjectList,
  TokenIssuer,
  WriteOptions,
} from './client.ts'
import { isNotFound, KubeError } from './kube-error.ts'
import { type KubeObject, keyOf, type ObjectKey, type Stored } from './object.ts'
import { isRecord, toList, toStored } from './parse-object.ts'
import { apiVersionOf, collectionPath, groupPath, objectPath, type Resource } from './resource.ts'
import type { Transport, TransportRequest } from './transport/transport.ts'
import { readEvents } from './watch/read-events.ts'

const PAGE_SIZE = 500

type ReadVerb = 'get' | 'list' | 'watch' | 'serves' | 'tokenIssuer'

/** Makes a client that sends its requests by `transport`, which stays the caller's to close. */
export function createClient(transport: Transport): Client {
  return { ...readVerbs(transport), ...writeVerbs(transport) }
}

function readVerbs(transport: Transport): Pick<Client, ReadVerb> {
  return {
    get: (resource, key, o = {}) => readObject(transport, resource, key, o),
    list: (resource, o = {}) => readPages(transport, resource, o),
    watch: async (resource, o) => {
      const path = collectionPath(resource, o.namespace)
      const stream = await transport.stream({
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
        // A reflector retries in its own way.
        isIdempotent: false,
        signal: o.signal,
      })
      return { events: readEvents(stream.lines, path), close: () => stream.close() }
    },
    serves: async (resource, o = {}) => {
      const path = groupPath(resource)
      try {
        const { body } = await transport.request({ method: 'GET', path, ...limits(o) })
        const resources: unknown = isRecord(body) ? body['resources'] : undefined
        if (!Array.isArray(resources)) return false
        return resources.some((entry) => isRecord(entry) && entry['name'] === resource.plural)
      } catch (error) {
        if (isNotFound(error)) return false
        throw error
      }
    },
    tokenIssuer: (o = {}) => readTokenIssuer(transport, o),
  }
}

/** @see OpenID Connect Discovery 1.0; the keys are read from the server itself, wherever `jwks_uri` leads. */
async function readTokenIssuer(transport: Transport, o: CallOptions): Promise<TokenIssuer> {
  const read = async (path: string, accept: string): Promise<Readonly<Record<string, unknown>>> => {
    const { body } = await transport.request({ method: 'GET', path, accept, ...limits(o) })
    return isRecord(body) ? body : {}
  }
  const [{ issuer: url }, { keys }] = await Promise.all([
    read('/.well-known/openid-configuration', 'application/json'),
    // The server gives them as no other type.
    read('/openid/v1/jwks', 'application/jwk-set+json'),
  ])
  if (typeof url === 'string' && Array.isArray(keys)) return { url, keys: keys.filter(isRecord) }
  const message = 'the issuer of ServiceAccount tokens: got no URL or no keys'
  throw new KubeError({ status: 0, reason: 'InvalidResponse', message })
}

async function readObject<T extends KubeObject>(
  transport: Transport,
  resource: Resource<T>,
  key: ObjectKey,
  o: CallOptions,
): Promise<Stored<T>> {
  const path = objectPath(resource, key)
  const { body } = await transport.request({ method: 'GET', path, ...limits(o) })
  return toStored<T>(body, path)
}

/** @see Kubernetes API concepts, metadata-only fetches */
const METADATA_ONLY = 'application/json;as=PartialObjectMetadataList;g=meta.k8s.io;v=v1'

async function readPages<T extends KubeObject>(
  transport: Transport,
  resource: Resource<T>,
  o: ListOptions,
): Promise<ObjectList<T>> {
  const path = collectionPath(resource, o.namespace)
  const items: Stored<T>[] = []
  for (let token = ''; ; ) {
    const { body } = await transport.request({
      method: 'GET',
      path,
      ...(o.isMetadataOnly === true && { accept: METADATA_ONLY }),
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

function writeVerbs(transport: Transport): Omit<Client, ReadVerb> {
  const write = async <T extends KubeObject>(
    o: WriteOptions,
    request: TransportRequest,
  ): Promise<Stored<T>> => {
    const query = { ...request.query, fieldManager: o.fieldManager, fieldValidation: 'Strict' }
    const { body } = await transport.request({ ...request, query, ...limits(o) })
    return toStored<T>(body, request.path)
  }
  return {
    create: (resource, object, o) => {
      const path = collectionPath(resource, object.metadata.namespace)
      return write(o, { method: 'POST', path, body: typed(resource, object) })
    },
    apply: (resource, object, o) => write(o, toApply(resource, object)),
    applyStatus: (resource, object, o) => write(o, toApply(resource, object, 'status')),
    replace: (resource, object, o) => {
      const path = objectPath(resource, keyOf(object))
      return write(o, { method: 'PUT', path, body: typed(resource, object) })
    },
    mergePatch: (resource, key, o) =>
      write(o, {
        method: 'PATCH',
        path: objectPath(resource, key, o.subresource),
        body: o.patch,
        contentType: 'application/merge-patch+json',
      }),
    delete: async (resource, key, o = {}) => {
      const { preconditions, propagation: propagationPolicy } = o
      await transport.request({
        method: 'DELETE',
        path: objectPath(resource, key),
        body: { apiVersion: 'v1', kind: 'DeleteOptions', preconditions, propagationPolicy },
        isIdempotent: preconditions?.uid !== undefined,
        ...limits(o),
      })
    },
  }
}

interface ApplyBody {
  readonly metadata: ObjectKey & { readonly uid?: string }
}

function toApply(resource: Resource, object: ApplyBody, subresource?: 'status'): TransportRequest {
  return {
    method: 'PATCH',
    path: objectPath(resource, keyOf(object), subresource),
    body: typed(resource, object),
    contentType: 'application/apply-patch+yaml',
    query: { force: true },
    // Without a uid the second one could make an object anew that was deleted after the first.
    isIdempotent: object.metadata.uid !== undefined || subresource === 'status',
  }
}

function typed(resource: Resource, object: object): unknown {
  return { ...object, apiVersion: apiVersionOf(resource), kind: resource.kind }
}

function limits({ signal, timeoutMs }: CallOptions): CallOptions {
  return { signal, timeoutMs }
}
