import { spawnSync } from 'node:child_process'
import { createHash, randomUUID } from 'node:crypto'
import { existsSync, readFileSync } from 'node:fs'
import { join } from 'node:path'

const DOCKERFILE = 'images/Dockerfile'
const IGNORE_FILE = `${DOCKERFILE}.dockerignore`
/** Change no image: those that the build is shown, and the folders of model_repository and examples that it is not. */
const NOT_KEPT = /^(model_repository|examples)\/\.|\.(test|soak|nightly)\.[a-z]+$|(^|\/)README\.md$/

/**
 * A digest of an image's inputs: the Dockerfile, and the files that it is shown. The base is not in it, nor packages of
 * Debian, which are as new as the day of the build. Outside of a checkout of git it is another one each time.
 *
 * @param {string} root - of the checkout.
 */
export function inputsDigest(root) {
  const files = inputFiles(root)
  if (files === undefined) return `unknown:${randomUUID()}`
  const hash = createHash('sha256')
  for (const file of files) {
    hash
      .update(`${file}\0`)
      .update(readFileSync(join(root, file)))
      .update('\0')
  }
  return `sha256:${hash.digest('hex')}`
}

/** Paths in the checkout, sorted: those that git knows or would add and that .dockerignore lets in. */
export function inputFiles(root) {
  const rules = readFileSync(join(root, IGNORE_FILE), 'utf8').split('\n')
  const shown = rules.filter((rule) => rule.startsWith('!')).map((rule) => rule.slice(1))
  const { status, stdout } = spawnSync(
    'git',
    ['ls-files', '-z', '-co', '--deduplicate', '--exclude-standard', '--', ...shown],
    { cwd: root, encoding: 'utf8', maxBuffer: 1 << 26 },
  )
  if (status !== 0) return undefined
  const found = stdout.split('\0').filter((path) => path !== '' && !NOT_KEPT.test(path))
  const files = [DOCKERFILE, IGNORE_FILE, ...found].filter((path) => existsSync(join(root, path)))
  return files.toSorted((one, other) => (one < other ? -1 : 1))
}
