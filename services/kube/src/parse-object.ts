import { noAnswer } from './kube-error.ts'
import type { KubeObject, Stored } from './object.ts'
import { apiVersionOf, type Resource } from './resource.ts'

/**
 * Takes what the API server sent for an object of type T. Its metadata is checked; for the rest the server, which holds all
 * objects against a schema, is believed.
 *
 * @throws KubeError `BadResponse`.
 */
export function toStored<T extends KubeObject>(body: unknown, where: string): Stored<T> {
  if (!isStored<T>(body)) {
    throw noAnswer(
      'BadResponse',
      `${where}: got ${describe(body)}, want an object with name and uid`,
    )
  }
  return body
}

/** One page of a list; `next` is empty for the last. The server leaves apiVersion and kind of its items out. */
export function toList<T extends KubeObject>(
  body: unknown,
  resource: Resource<T>,
  where: string,
): { items: Stored<T>[]; resourceVersion: string; next: string } {
  const { items, metadata } = isRecord(body) ? body : {}
  if (!isRecord(metadata) || typeof metadata['resourceVersion'] !== 'string') {
    throw noAnswer('BadResponse', `${where}: got ${describe(body)}, want a list`)
  }
  const { resourceVersion, continue: next } = metadata
  const type = { apiVersion: apiVersionOf(resource), kind: resource.kind }
  const objects = Array.isArray(items) ? items : []
  return {
    items: objects.map((item) => toStored<T>(isRecord(item) ? { ...type, ...item } : item, where)),
    resourceVersion,
    next: typeof next === 'string' ? next : '',
  }
}

export function isRecord(value: unknown): value is Record<string, unknown> {
  return typeof value === 'object' && value !== null && !Array.isArray(value)
}

function isStored<T extends KubeObject>(body: unknown): body is Stored<T> {
  const metadata = isRecord(body) ? body['metadata'] : undefined
  if (!isRecord(metadata)) return false
  return typeof metadata['name'] === 'string' && typeof metadata['uid'] === 'string'
}

function describe(body: unknown): string {
  return (JSON.stringify(body) ?? 'nothing').slice(0, 200)
}
