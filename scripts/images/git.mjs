import { firstLine } from '../setup/child.mjs'

/** The commit that images are built from; `-dirty` if files differ from it, and `unknown` outside of a checkout. */
export function revisionOf(root) {
  const commit = firstLine('git', ['-C', root, 'rev-parse', 'HEAD'])
  if (commit === undefined) return 'unknown'
  return firstLine('git', ['-C', root, 'status', '--porcelain']) ? `${commit}-dirty` : commit
}

/** Where the sources are, by the origin of the checkout; nothing if that is a folder. */
export function sourceOf(root) {
  return toSourceUrl(firstLine('git', ['-C', root, 'remote', 'get-url', 'origin']) ?? '')
}

/** A web address without credentials. */
export function toSourceUrl(remote) {
  const [, host, path] =
    /^(?:ssh:\/\/)?git@([^:/]+)[:/](.+)$/.exec(remote) ??
    /^https?:\/\/(?:[^@/]*@)?([^/]+)\/(.+)$/.exec(remote) ??
    []
  return host === undefined ? '' : `https://${host}/${path.replace(/\.git$/, '')}`
}
