import { createHash } from 'node:crypto'
import { mkdirSync, readdirSync, readFileSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'

const FOLDER = join(import.meta.dirname, 'corpus')

/** The inputs of a surface that are committed: examples, and what once was found. */
export function readCorpus(surface) {
  const folder = join(FOLDER, surface)
  return readdirSync(folder)
    .toSorted()
    .map((name) => ({ name, bytes: readFileSync(join(folder, name)) }))
}

/** Keeps an input that showed a fault, for `npm test` to replay from then on. @returns its path. */
export function keepFinding(surface, bytes) {
  const folder = join(FOLDER, surface)
  mkdirSync(folder, { recursive: true })
  const path = join(
    folder,
    `found-${createHash('sha256').update(bytes).digest('hex').slice(0, 12)}`,
  )
  writeFileSync(path, bytes)
  return path
}
