import { type FlagTable, type FlagValues, flagRefusal } from '@tutti/chassis'

/** Flags of `tutti serve` for manifests, beside or instead of model repositories. */
export const MANIFEST_FLAGS = {
  filename: {
    type: 'string',
    path: 'file',
    aliases: ['f'],
    repeatable: true,
    description:
      'File or folder of manifests (Models and Ensembles), or - for standard input. Repeat the flag for more. Manifests are read once, at the start.',
  },
  'storage-map': {
    type: 'string',
    path: 'folder',
    repeatable: true,
    description:
      'URI=DIR: read models whose storageUri begins with URI from the folder DIR, e.g. pvc://models=./models. hostPath:// needs no map.',
  },
  'secret-map': {
    type: 'string',
    path: 'folder',
    repeatable: true,
    description:
      'NAME=DIR: read the Secret NAME of a storage.secretRef from the folder DIR, with a file for each key.',
  },
  'model-cache': {
    type: 'string',
    path: 'folder',
    description:
      'Folder for models that are fetched over http(s)://, s3://, gs://, as://, hf:// and oci://. Default: tutti/models in XDG_CACHE_HOME or ~/.cache.',
  },
} as const satisfies FlagTable

export type ManifestFlags = FlagValues<typeof MANIFEST_FLAGS>

/** Checks the flags for manifests. @throws ServeError FLAG_INVALID if a flag other than `--filename` comes without it. */
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
      'got it without --filename, want both: it is about the models of manifests',
    )
  }
}
