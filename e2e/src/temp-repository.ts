import { appendFile, cp, mkdir, mkdtemp, readFile, rm, writeFile } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import type { Test } from 'tap'
import { ROOT } from './serving.ts'

export const BASIC = `${ROOT}model_repository/.variants/fixtures/basic`
export const BROKEN = `${ROOT}model_repository/.variants/fixtures/broken`

/** An empty folder that vanishes with the test. */
export async function tempFolder(t: Test): Promise<string> {
  const folder = await mkdtemp(join(tmpdir(), 'tutti-e2e-'))
  t.teardown(() => rm(folder, { recursive: true, force: true }))
  return folder
}

/**
 * A repository with copies of some fixtures: quicker to start than with all of them, and a test may change it.
 *
 * @param o.append - model -> text that is added to its config.pbtxt.
 */
export async function copyModels(
  t: Test,
  models: readonly string[],
  o: { readonly from?: string; readonly append?: Readonly<Record<string, string>> } = {},
): Promise<string> {
  const folder = await tempFolder(t)
  for (const model of models) {
    await cp(join(o.from ?? BASIC, model), join(folder, model), { recursive: true })
  }
  for (const [model, text] of Object.entries(o.append ?? {})) {
    await appendFile(join(folder, model, 'config.pbtxt'), `\n${text}\n`)
  }
  return folder
}

/** Adds a version that does not load to a model of a copied repository whose `version_policy` is `specific`. */
export async function addBrokenVersion(
  folder: string,
  model: string,
  version: number,
): Promise<void> {
  const directory = join(folder, model, String(version))
  await mkdir(directory)
  await writeFile(join(directory, 'model.onnx'), 'no model')
  const path = join(folder, model, 'config.pbtxt')
  const text = await readFile(path, 'utf8')
  await writeFile(path, text.replace(/versions: \[(.*?)\]/, `versions: [$1, ${version} ]`))
}

/** Text for a config.pbtxt: so many instances. */
export function instances(count: number): string {
  return `instance_group { count: ${count} kind: KIND_CPU }`
}
