import { mkdir, writeFile } from 'node:fs/promises'
import { join } from 'node:path'
import { type FlagTable, type ProcessEnvironment } from '@tutti/chassis'
import { ServeError } from '@tutti/errors'
import { type Command, withFlags } from '../command.ts'
import { type ImportedRepository, importTriton } from './import-triton.ts'
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
} as const satisfies FlagTable

export const importCommand: Command = {
  name: 'import',
  description: 'Writes a model repository of Triton as manifests of Models and Ensembles.',
  ...withFlags(
    {
      usage: 'tutti import triton DIR [FLAGS]',
      flags: IMPORT_FLAGS,
      operands: [['triton'], 'folder'],
    },
    async ({ flags, positionals }, environment) => {
      const [format, directory, ...more] = positionals
      if (format !== 'triton' || directory === undefined || more.length > 0) {
        const got = positionals.length === 0 ? 'nothing' : `'${positionals.join(' ')}'`
        throw new ServeError('FLAG_INVALID', `got ${got}, want triton DIR`)
      }
      const prefix = flags['storage-uri-prefix']
      const imported = await importTriton(directory, prefix)
      await writeAll(imported, flags['output-dir'], environment)
      for (const problem of imported.problems) environment.err(`tutti import: ${problem}\n`)
      return imported.problems.length === 0 ? 0 : 1
    },
  ),
}

async function writeAll(
  { manifests }: ImportedRepository,
  folder: string | undefined,
  environment: ProcessEnvironment,
): Promise<void> {
  if (folder === undefined) {
    environment.out(manifests.map(renderManifest).join('---\n'))
    return
  }
  await mkdir(folder, { recursive: true })
  for (const manifest of manifests) {
    const file = `${manifest.kind.toLowerCase()}-${manifest.metadata.name}.yaml`
    await writeFile(join(folder, file), renderManifest(manifest))
  }
  environment.out(`${manifests.length} manifests in ${folder}\n`)
}
