import { cpSync, mkdtempSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { ROOT } from './servers.ts'

const FIXTURES = `${ROOT}model_repository/.variants/fixtures/basic`

/** A repository with one fixture model: the others' sessions and threads would be in the figures. */
export interface FixtureRepository {
  readonly path: string
  remove(): void
}

/** Copies a fixture model into a repository of its own. */
export function makeFixtureRepository(model: string): FixtureRepository {
  const path = mkdtempSync(join(tmpdir(), 'tutti-bench-'))
  cpSync(join(FIXTURES, model), join(path, model), { recursive: true })
  return { path, remove: () => rmSync(path, { recursive: true }) }
}
