import type { KubeObject, ObjectMeta, Stored } from '@tutti/kube'

let made = 0

/** Builds an object as a server returns it. Each has a new resourceVersion and uid, unless `metadata` gives them. */
export function storedObject<T extends object = object>(
  metadata: ObjectMeta,
  rest: T & { readonly kind?: string; readonly apiVersion?: string } = {} as T,
): Stored<KubeObject> & T {
  made += 1
  return {
    apiVersion: 'tutti.dev/v1alpha1',
    kind: 'Model',
    ...rest,
    metadata: {
      uid: `uid-${made}`,
      creationTimestamp: '2026-01-01T00:00:00Z',
      namespace: 'ns',
      ...metadata,
      resourceVersion: metadata.resourceVersion ?? String(1000 + made),
    },
  }
}
