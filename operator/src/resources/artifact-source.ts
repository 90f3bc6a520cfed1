/** The source of a model's artifacts. */
export type ArtifactSource =
  /** Source that an init container fetches into the pod. */
  | { readonly kind: 'remote'; readonly uri: string }
  /** Source in an image, from which an init container copies it. `path` has no slash at its beginning. */
  | { readonly kind: 'image'; readonly image: string; readonly path: string }
  /** Source on a PersistentVolumeClaim. `path` is '' for its root. */
  | { readonly kind: 'claim'; readonly claim: string; readonly path: string }
  | { readonly kind: 'hostPath'; readonly path: string }

/** Parses a `storageUri` by its scheme; an unknown scheme counts as remote. @param uri - a value that passed the schema. */
export function parseArtifactSource(uri: string): ArtifactSource {
  const [, scheme, rest = ''] = /^([A-Za-z0-9]+):\/\/(.*)$/s.exec(uri) ?? []
  if (scheme === 'pvc') {
    const [claim = '', ...parts] = rest.split('/')
    return { kind: 'claim', claim, path: parts.filter((part) => part !== '').join('/') }
  }
  if (scheme === 'hostPath') return { kind: 'hostPath', path: rest }
  if (scheme === 'image') {
    // A path has no colon: the last one is that of the tag, or of the digest.
    const end = rest.indexOf('/', rest.lastIndexOf(':'))
    return { kind: 'image', image: rest.slice(0, end), path: rest.slice(end + 1) }
  }
  return { kind: 'remote', uri }
}
