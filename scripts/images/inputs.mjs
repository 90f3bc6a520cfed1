import { createHash } from 'node:crypto'
import { readdirSync, readFileSync } from 'node:fs'
import { join } from 'node:path'

const DOCKERFILE = 'images/Dockerfile'
/** Are let in, and no image has them. */
const NOT_KEPT = /\.test\.[a-z]+$|(^|\/)(README\.md|\.tap)$/

/**
 * A digest of what images are built from: the Dockerfile, and the files that it is shown. The base is not in it, nor packages of
 * Debian, which are as new as the day of the build.
 *
 * @param {string} root - of the checkout.
 */
export function inputsDigest(root) {
  const hash = createHash('sha256')
  for (const file of inputFiles(root)) {
    hash
      .update(`${file}\0`)
      .update(readFileSync(join(root, file)))
      .update('\0')
  }
  return `sha256:${hash.digest('hex')}`
}

/** Paths in the checkout, sorted. */
export function inputFiles(root) {
  const ignoreFile = `${DOCKERFILE}.dockerignore`
  const rules = parseRules(readFileSync(join(root, ignoreFile), 'utf8'))
  const found = walk(root, '', rules).filter((path) => isLetIn(path, rules))
  const files = [...new Set([DOCKERFILE, ignoreFile, ...found])]
  return files.toSorted((one, other) => (one < other ? -1 : 1))
}

/**
 * As docker reads such a file: of the lines that match a path, or a folder that it is in, the last one holds.
 *
 * @returns {{ pattern: RegExp, letsIn: boolean, isAnywhere: boolean, top: string }[]}
 */
function parseRules(text) {
  const lines = text.split('\n').filter((line) => line !== '' && !line.startsWith('#'))
  return lines.map((line) => {
    const letsIn = line.startsWith('!')
    const glob = letsIn ? line.slice(1) : line
    const isAnywhere = glob.startsWith('**/')
    const source = glob
      .replace(/^\*\*\//, '')
      .replaceAll('.', '\\.')
      .replaceAll('*', '[^/]*')
    const pattern = new RegExp(`${isAnywhere ? '(^|/)' : '^'}${source}(/|$)`)
    return { pattern, letsIn, isAnywhere, top: glob.split('/')[0] }
  })
}

function isLetIn(path, rules) {
  return rules.findLast(({ pattern }) => pattern.test(path))?.letsIn ?? true
}

function walk(root, folder, rules) {
  return readdirSync(join(root, folder), { withFileTypes: true }).flatMap((entry) => {
    const path = folder === '' ? entry.name : `${folder}/${entry.name}`
    const isWanted = folder !== '' || rules.some(({ letsIn, top }) => letsIn && top === entry.name)
    const isOut = rules.some(({ isAnywhere, pattern }) => isAnywhere && pattern.test(path))
    if (!isWanted || isOut || NOT_KEPT.test(path)) return []
    return entry.isDirectory() ? walk(root, path, rules) : [path]
  })
}
