import { ServeError } from '@tutti/errors'
import type { FetchBounds } from './fetch-options.ts'

const MAX_PATH_BYTES = 1024
const MAX_NAME_BYTES = 255
const MAX_DEPTH = 32

/**
 * Checks the paths that an archive or a bucket gives to a model's files, before any is written. Each path stays in the model's
 * folder and conflicts with no other; all together stay within the bounds.
 */
export class TreePlan {
  readonly #bounds: Pick<FetchBounds, 'maxBytes' | 'maxFiles'>
  /** Paths of files and links. */
  readonly #paths = new Set<string>()
  readonly #folders = new Set<string>()
  #entries = 0
  #bytes = 0

  constructor(bounds: Pick<FetchBounds, 'maxBytes' | 'maxFiles'>) {
    this.#bounds = bounds
  }

  get files(): number {
    return this.#paths.size
  }

  get bytes(): number {
    return this.#bytes
  }

  /** Tells whether a file or link with this path was added. */
  has(path: string): boolean {
    return this.#paths.has(path)
  }

  /**
   * Checks a path and adds it to the plan.
   *
   * @param kind - links are added as files.
   * @param name - relative, with `/`; a leading `./` and a trailing `/` do not count.
   * @returns the path, without what does not count; '' for the folder itself.
   * @throws ServeError ARTIFACT_INVALID that shows the name and says why, ARTIFACT_TOO_LARGE.
   */
  add(kind: 'file' | 'directory', name: string, sizeBytes = 0): string {
    const path = name.replace(/^(\.\/+)+/, '').replace(/\/+$/, '')
    if (kind === 'directory' && (path === '' || path === '.')) return ''
    const problem = pathProblem(path) ?? this.#conflict(kind, path)
    if (problem !== undefined) throw invalidArtifact(name, problem)
    if (kind === 'file') this.#paths.add(path)
    else this.#folders.add(path)
    for (const parent of parentsOf(path)) this.#folders.add(parent)
    this.#count(sizeBytes)
    return path
  }

  #conflict(kind: 'file' | 'directory', path: string): string | undefined {
    if (this.#paths.has(path)) return 'it is there twice'
    if (kind === 'file' && this.#folders.has(path)) return 'it is a folder too'
    const parent = parentsOf(path).find((one) => this.#paths.has(one))
    return parent === undefined ? undefined : `it lies in '${parent}', which is no folder`
  }

  #count(sizeBytes: number): void {
    this.#entries += 1
    this.#bytes += sizeBytes
    const { maxBytes, maxFiles } = this.#bounds
    // Folders count too: an archive may hold nothing else.
    if (this.files > maxFiles || this.#entries > 2 * maxFiles) {
      throw tooManyFiles(maxFiles)
    }
    if (this.#bytes > maxBytes) {
      const text = `${this.#bytes} bytes or more, want at most ${maxBytes}`
      throw new ServeError('ARTIFACT_TOO_LARGE', text)
    }
  }
}

/** Lists the folders that contain a path, the outermost first. */
function parentsOf(path: string): readonly string[] {
  return path
    .split('/')
    .map((_, i, parts) => parts.slice(0, i).join('/'))
    .slice(1)
}

/** Explains why a path cannot be one in a model's folder; undefined if it can. */
export function pathProblem(path: string): string | undefined {
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

/** Builds the error of a model with more files than the limit. */
export function tooManyFiles(maxFiles: number): ServeError {
  return new ServeError('ARTIFACT_TOO_LARGE', `more than ${maxFiles} files, which is the limit`)
}

/** Builds the error ARTIFACT_INVALID for a name that an archive, a bucket or a folder gives. */
export function invalidArtifact(name: string, problem: string): ServeError {
  return new ServeError('ARTIFACT_INVALID', `"${show(name)}" is refused: ${problem}`)
}

/** Converts a text to one line for a message: escaped as in JSON, and cut after 100 characters. */
export function show(text: string): string {
  const line = JSON.stringify(text).slice(1, -1)
  return line.length > 100 ? `${line.slice(0, 100)}...` : line
}
