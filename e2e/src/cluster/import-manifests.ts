import { execFile } from 'node:child_process'
import { promisify } from 'node:util'
import type { PlainObject } from '@tutti/kube/testing'
import { parseAll } from '../chart/helm.ts'
import { TUTTI } from '../serving.ts'

/** What `tutti import triton` makes of a repository that is the claim `models`. */
export async function importManifests(folder: string): Promise<readonly PlainObject[]> {
  const args = [TUTTI, 'import', 'triton', folder, '--storage-uri-prefix=pvc://models']
  const { stdout } = await promisify(execFile)(process.execPath, args)
  return parseAll(stdout)
}

/** What clients call a Model or an Ensemble. */
export function servedName({ metadata, spec }: PlainObject): string {
  return spec.modelName ?? metadata.name
}
