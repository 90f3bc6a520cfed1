import { type FlagTable, type FlagValues, flagRefusal } from '@tutti/chassis'

/** What `tutti serve` takes beside or instead of model repositories. */
export const MANIFEST_FLAGS = {
  filename: {
    type: 'string',
    aliases: ['f'],
    repeatable: true,
    description:
      'A file of manifests of Models and Ensembles, a folder of them, or - for standard input; several may be given. They are read once, at the start: the mode poll follows the models’ files, not the manifests.',
  },
  'storage-map': {
    type: 'string',
    repeatable: true,
    description:
      'URI=DIR: where what a storageUri begins with is on this machine, e.g. pvc://models=./models. hostPath:// needs none.',
  },
  'secret-map': {
    type: 'string',
    repeatable: true,
    description: 'NAME=DIR: where the Secret of a storage.secretRef is: a file for each key.',
  },
  'model-cache': {
    type: 'string',
    description:
      'Folder for models that are fetched from http(s):// and s3://. Default: tutti/models in XDG_CACHE_HOME or ~/.cache.',
  },
} as const satisfies FlagTable

export type ManifestFlags = FlagValues<typeof MANIFEST_FLAGS>

/** @throws ServeError FLAG_INVALID if a flag says where the models of manifests are, and there are no manifests. */
export function checkManifestFlags(flags: ManifestFlags): void {
  if (flags.filename.length > 0) return
  const given = [
    ['--storage-map', flags['storage-map'].length > 0],
    ['--secret-map', flags['secret-map'].length > 0],
    ['--model-cache', flags['model-cache'] !== undefined],
  ] as const
  for (const [field, isGiven] of given) {
    if (!isGiven) continue
    throw flagRefusal(
      field,
      'given without --filename, want both: it is about the models of manifests',
    )
  }
}
