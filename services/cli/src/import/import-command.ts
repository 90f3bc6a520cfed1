import { mkdir, writeFile } from 'node:fs/promises'
import { join } from 'node:path'
import type { Manifest } from '@tutti/api'
import { type FlagTable, flagRefusal, renderJson } from '@tutti/chassis'
import { RESULT_FORMAT_FLAG, withFlags } from '@tutti/command-line/command'
import { readonlyListOf } from '@tutti/command-line/results'
import { ServeError, SITE } from '@tutti/errors'
import { z } from 'zod'
import { importTriton } from './import-triton.ts'
import { renderManifest } from './render-manifest.ts'

export const IMPORT_FLAGS = {
  'output-dir': {
    type: 'string',
    path: 'folder',
    description:
      'Folder for the manifests, a file each. Default: all manifests go to standard output.',
  },
  'storage-uri-prefix': {
    type: 'string',
    description:
      "Beginning of storageUri, before the name of the model's folder, e.g. pvc://models. Default: hostPath:// and the path of the repository.",
  },
  cpu: {
    type: 'bool',
    default: false,
    description:
      'For machines without GPUs: models of KIND_GPU, or with gpus, execute on the CPU. Default: they get devices (accelerator).',
  },
  format: RESULT_FORMAT_FLAG,
} as const satisfies FlagTable

/** The result that `tutti import` prints as JSON. */
const ImportResult = z
  .object({
    manifests: readonlyListOf(
      z.custom<Manifest>().meta({ $ref: `${SITE}/schemas/v1alpha1/manifest.json` }),
    ),
    files: readonlyListOf(z.string()).meta({
      description: 'The files that were written, one for each manifest; none without --output-dir.',
    }),
    problems: readonlyListOf(z.string()).meta({
      description: 'What could not be written as a manifest.',
    }),
  })
  .meta({ title: 'Result of tutti import' })
type ImportResult = z.infer<typeof ImportResult>

export const importCommand = withFlags(
  {
    usage: 'tutti import triton DIR [FLAGS]',
    flags: IMPORT_FLAGS,
    operands: [['triton'], 'folder'],
    result: ImportResult,
  },
  async ({ flags, positionals }, environment) => {
    const [format, directory, ...more] = positionals
    if (format !== 'triton' || !directory || more.length > 0) {
      const got = positionals.length === 0 ? 'nothing' : `'${positionals.join(' ')}'`
      throw new ServeError('FLAG_INVALID', `got ${got}, want triton DIR`)
    }
    const prefix = flags['storage-uri-prefix']
    const { manifests, problems } = await importTriton(directory, { prefix, forCpu: flags.cpu })
    const folder = flags['output-dir']
    const files = folder === undefined ? [] : await writeAll(manifests, folder)
    if (flags.format === 'json') {
      const result: ImportResult = { manifests, files, problems }
      environment.out(renderJson(result))
    } else {
      const all = manifests.map(renderManifest).join('---\n')
      environment.out(folder === undefined ? all : `${files.length} manifests in ${folder}\n`)
      for (const problem of problems) environment.err(`tutti import: ${problem}\n`)
    }
    return problems.length === 0 ? 0 : 1
  },
)

/** @returns the paths of the files, one for each manifest. @throws ServeError FLAG_INVALID */
async function writeAll(
  manifests: readonly Manifest[],
  folder: string,
): Promise<readonly string[]> {
  const files: string[] = []
  try {
    await mkdir(folder, { recursive: true })
    for (const manifest of manifests) {
      const file = join(folder, `${manifest.kind.toLowerCase()}-${manifest.metadata.name}.yaml`)
      await writeFile(file, renderManifest(manifest))
      files.push(file)
    }
  } catch (cause) {
    const { message } = ServeError.from(cause)
    throw flagRefusal('--output-dir', `${folder} cannot be written: ${message}`, cause)
  }
  return files
}
