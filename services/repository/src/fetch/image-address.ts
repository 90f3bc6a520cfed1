/** A manifest in a registry, and a folder of what it holds. */
export interface ImageAddress {
  /** Origin of the registry's API. */
  readonly registry: URL
  /** Host of the registry as the address names it: credentials are listed by it. */
  readonly host: string
  readonly repository: string
  /** A tag, or `sha256:HEX`. */
  readonly reference: string
  /** Folder of the model; '' for all that the manifest holds. */
  readonly path: string
}

const NAME = '[a-z0-9]+(?:[._-]+[a-z0-9]+)*'
const ADDRESS = new RegExp(
  '^(?<host>[A-Za-z0-9.-]+(?::\\d{1,5})?|\\[[0-9a-fA-F:.]+\\](?::\\d{1,5})?)' +
    `/(?<repository>${NAME}(?:/${NAME})*)` +
    '(?::(?<tag>[A-Za-z0-9_][A-Za-z0-9_.-]{0,127}))?(?:@(?<digest>sha256:[0-9a-f]{64}))?' +
    '(?:/(?<path>.*))?$',
  's',
)
/** Hosts whose registries speak plain HTTP, as for other programs. */
const LOOPBACK = /^(localhost|127(\.\d{1,3}){3}|\[::1\])(:|$)/

/**
 * Parses `HOST/REPOSITORY:TAG[/PATH]` or `HOST/REPOSITORY[:TAG]@sha256:HEX[/PATH]`.
 *
 * @returns undefined if the text is neither.
 */
export function parseImageAddress(text: string): ImageAddress | undefined {
  const { host, repository, tag, digest, path = '' } = ADDRESS.exec(text)?.groups ?? {}
  const reference = digest ?? tag
  if (host === undefined || repository === undefined || reference === undefined) return undefined
  // Docker Hub's images have one name, its API another.
  const server = host === 'docker.io' ? 'registry-1.docker.io' : host
  const registry = URL.parse(`${LOOPBACK.test(host) ? 'http' : 'https'}://${server}`)
  if (registry === null) return undefined
  return { registry, host, repository, reference, path: path.replaceAll(/^\/+|\/+$/g, '') }
}
