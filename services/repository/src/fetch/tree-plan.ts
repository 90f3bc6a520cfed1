import { ServeError } from '@tutti/errors'
import type { FetchBounds } from './fetch-options.ts'

const MAX_PATH_BYTES = 1024
const MAX_NAME_BYTES = 255
const MAX_DEPTH = 32

/** What is to become of one path below a model's directory. */
type Kind = 'file' | 'directory' | 'link'

/**
 * The paths of a tree that is about to be written, as names from outside. Each is judged before anything is written: it stays
 * below the tree, excludes no other, and all of them together stay within the bounds.
 */
export class TreePlan {
  readonly #bounds: Pick<FetchBounds, 'maxBytes' | 'maxFiles'>
  readonly #kinds = new Map<string, Kind>()
  #files = 0
  #bytes = 0

  constructor(bounds: Pick<FetchBounds, 'maxBytes' | 'maxFiles'>) {
    this.#bounds = bounds
  }

  get files(): number {
    return this.#files
  }

  get bytes(): number {
    return this.#bytes
  }

  kind(path: string): Kind | undefined {
    return this.#kinds.get(path)
  }

  /**
   * @param name - relative, with `/`; a leading `./` and a trailing `/` do not count.
   * @param sizeBytes - what it will hold.
   * @returns the path, without what does not count; '' for the tree itself.
   * @throws ServeError ARTIFACT_INVALID that shows the name and says why, ARTIFACT_TOO_LARGE.
   */
  add(kind: Kind, name: string, sizeBytes = 0): string {
    const path = name.replace(/^(\.\/+)+/, '').replace(/\/+$/, '')
    if (path === '' || path === '.') {
      if (kind === 'directory') return ''
      throw invalid(name, 'it is no name of a file')
    }
    const fault = pathFault(path)
    if (fault !== undefined) throw invalid(name, fault)
    this.#addParents(path, name)
    const before = this.#kinds.get(path)
    if (before !== undefined && (before !== 'directory' || kind !== 'directory')) {
      throw invalid(name, `it is there twice, as ${before} and ${kind}`)
    }
    if (before === undefined) this.#count(kind, sizeBytes)
    this.#kinds.set(path, kind)
    return path
  }

  #addParents(path: string, name: string): void {
    for (let at = path.indexOf('/'); at >= 0; at = path.indexOf('/', at + 1)) {
      const parent = path.slice(0, at)
      const kind = this.#kinds.get(parent)
      if (kind === undefined) {
        this.#count('directory', 0)
        this.#kinds.set(parent, 'directory')
      } else if (kind !== 'directory') throw invalid(name, `it lies in '${parent}', a ${kind}`)
    }
  }

  #count(kind: Kind, sizeBytes: number): void {
    if (kind !== 'directory') this.#files += 1
    this.#bytes += sizeBytes
    const { maxBytes, maxFiles } = this.#bounds
    // Directories count too: an archive of nothing else must end some time.
    if (this.#kinds.size >= 2 * maxFiles || this.#files > maxFiles) {
      throw new ServeError('ARTIFACT_TOO_LARGE', `more than ${maxFiles} files, want at most that`)
    }
    if (this.#bytes > maxBytes) {
      throw new ServeError(
        'ARTIFACT_TOO_LARGE',
        `${this.#bytes} bytes or more, want at most ${maxBytes}`,
      )
    }
  }
}

function pathFault(path: string): string | undefined {
  if (Buffer.byteLength(path) > MAX_PATH_BYTES) return `want at most ${MAX_PATH_BYTES} bytes`
  const parts = path.split('/')
  if (parts.length > MAX_DEPTH) return `want at most ${MAX_DEPTH} levels`
  if (path.startsWith('/') || parts.includes('..')) return 'it leads out of the model’s folder'
  const odd = parts.find((part) => !isPlain(part))
  return odd === undefined ? undefined : `"${show(odd)}" is no name of a file`
}

function isPlain(part: string): boolean {
  if (part === '' || part === '.') return false
  // A lone surrogate is written as another name than it is read.
  if (!part.isWellFormed() || part.includes('\uFFFD')) return false
  // oxlint-disable-next-line no-control-regex -- control characters are what is refused
  return !/[\\\u0000-\u001f\u007f]/.test(part) && Buffer.byteLength(part) <= MAX_NAME_BYTES
}

/** @throws nothing; makes the error for a name from outside. */
export function invalid(name: string, problem: string): ServeError {
  return new ServeError('ARTIFACT_INVALID', `"${show(name)}" is refused: ${problem}`)
}

/** What came from outside, in one line that is short enough for a message. */
function show(text: string): string {
  const line = JSON.stringify(text).slice(1, -1)
  return line.length > 100 ? `${line.slice(0, 100)}...` : line
}
