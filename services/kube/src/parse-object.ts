import { noAnswer } from './kube-error.ts'
import type { KubeObject, Stored } from './object.ts'
import { apiVersionOf, type Resource } from './resource.ts'

/**
 * Takes a body of the API server as an object of type T. Only the name and the uid are checked, since the server checks all
 * objects against a schema.
 *
 * @param where - the request, for the message.
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

/**
 * Parses one page of a list, and adds apiVersion and kind to its items, which the server leaves out.
 *
 * @param where - the request, for the message.
 * @returns `next`: the token of the next page, empty after the last.
 * @throws KubeError `BadResponse`.
 */
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
