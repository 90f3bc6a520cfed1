/** Where the artifacts of a model come from. */
export type ArtifactSource =
  /** Fetched into the pod by an init container. */
  | { readonly kind: 'remote'; readonly uri: string }
  /** Copied by an init container of that image; `path` has no slash at its beginning. */
  | { readonly kind: 'image'; readonly image: string; readonly path: string }
  /** `path` is '' for the root of the claim. */
  | { readonly kind: 'claim'; readonly claim: string; readonly path: string }
  | { readonly kind: 'hostPath'; readonly path: string }

/** @param uri - as the schema lets it in. */
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
