import { readFile } from 'node:fs/promises'
import { ServeError } from '@tutti/errors'
import type { Clock } from '../calls/call-context.ts'

/** Text files that are read again when they change. */
export interface FollowedFiles {
  readonly paths: readonly string[]
  /** Makes the error that says what is wrong with a file that cannot be read. */
  readonly refuse: (path: string, cause: Error) => ServeError
}

export interface FollowFilesOptions extends FollowedFiles {
  /** The texts that were taken at the start, in the order of the paths. */
  readonly texts: readonly string[]
  /** Takes the texts of all files after one of them has changed. @throws ServeError to refuse them */
  readonly take: (texts: readonly string[]) => void
  /**
   * Called if the files cannot be read or `take` refuses them. The texts taken last stay in use. An error that repeats is
   * reported once.
   */
  readonly failed: (error: ServeError) => void
  readonly clock: Clock
}

function areSame(texts: readonly string[], others: readonly string[]): boolean {
  return texts.every((text, i) => text === others[i])
}

/** Time between two looks. A mounted Secret is replaced as a whole; a look costs less than watching all that may be replaced. */
const LOOK_MS = 1000

/** Reads the texts of files, in the order of the paths. @throws ServeError, made by `refuse`, for a file that cannot be read. */
export async function readFiles({ paths, refuse }: FollowedFiles): Promise<readonly string[]> {
  return await Promise.all(
    paths.map(async (path) => {
      try {
        return await readFile(path, 'utf8')
      } catch (cause) {
        throw refuse(path, ServeError.from(cause))
      }
    }),
  )
}

/**
 * Reads files every second and takes their texts when they have changed. It takes only texts that two reads in a row have given,
 * because a single read may see a file that is half written. Refused texts are tried again at each read, so files that change one
 * after the other are taken once they fit together.
 *
 * @returns a function that stops the reads.
 */
export function followFiles(o: FollowFilesOptions): () => void {
  const { take, failed, clock } = o
  let { texts: taken } = o
  let seen = taken
  let complaint = ''
  let isEnded = false
  const look = async (): Promise<void> => {
    try {
      const texts = await readFiles(o)
      if (isEnded) return
      const isSame = areSame(texts, seen)
      seen = texts
      if (!isSame) return
      if (!areSame(texts, taken)) take(texts)
      taken = texts
      complaint = ''
    } catch (thrown) {
      const error = ServeError.from(thrown)
      if (!isEnded && error.message !== complaint) failed(error)
      complaint = error.message
    }
  }
  const lookLater = (): (() => void) =>
    clock.setTimer(LOOK_MS, () => {
      void look().finally(() => {
        if (!isEnded) stopTimer = lookLater()
      })
    })
  let stopTimer = lookLater()
  return () => {
    isEnded = true
    stopTimer()
  }
}
