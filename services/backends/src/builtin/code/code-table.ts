import type { CodeBuiltinName, OptionsOf } from '@tutti/builtins'
import type { CodePlace, OpenedCode } from './code-step.ts'

type Open<Options> = (options: Options, place: CodePlace) => Promise<OpenedCode>

/** Opens the built-ins that are no graphs. The compiler wants an entry for each; a module loads with its first step. */
const CODE: { readonly [Name in CodeBuiltinName]: Open<OptionsOf<Name>> } = {
  imageDecode: async (options) =>
    (await import('./pictures/open-pictures.ts')).openImageDecode(options),
  imageEncode: async (options) =>
    (await import('./pictures/open-pictures.ts')).openImageEncode(options),
  probabilityBoxes: async (options) =>
    (await import('./boxes/open-probability-boxes.ts')).openProbabilityBoxes(options),
  rotatedNms: async (options) =>
    (await import('./boxes/open-rotated-nms.ts')).openRotatedNms(options),
  cropBoxes: async (options) => (await import('./crops/open-crop-boxes.ts')).openCropBoxes(options),
  cropRotated: async (options) =>
    (await import('./crops/open-crop-rotated.ts')).openCropRotated(options),
  base64: async (options) => (await import('./text/base64.ts')).openBase64(options),
  ctcGreedy: async (options, place) =>
    (await import('./text/ctc-greedy.ts')).openCtcGreedy(options, place),
  labelIndex: async (options, place) =>
    (await import('./text/label-index.ts')).openLabelIndex(options, place),
  labelLookup: async (options, place) =>
    (await import('./text/label-lookup.ts')).openLabelLookup(options, place),
  tokenize: async (options, place) =>
    (await import('./text/tokenize.ts')).openTokenize(options, place),
  detokenize: async (options, place) =>
    (await import('./text/detokenize.ts')).openDetokenize(options, place),
  joinTexts: async (options) => (await import('./join-texts.ts')).openJoinTexts(options),
}

/** Built-ins that await native code on libuv's threads and compute next to nothing themselves: the serving thread calls them. */
const ON_POOL: ReadonlySet<CodeBuiltinName> = new Set(['imageDecode', 'imageEncode'])

/** Tells whether a built-in computes in JavaScript, and gets a thread of its own for each instance. */
export const runsOnThread = (name: CodeBuiltinName): boolean => !ON_POOL.has(name)

/**
 * Opens the code of a built-in.
 *
 * @param options - as the catalogue has parsed them for this built-in.
 * @throws ServeError MODEL_LOAD_FAILED for files that do not fit.
 */
export async function openCode(
  name: CodeBuiltinName,
  options: object,
  place: CodePlace,
): Promise<OpenedCode> {
  // oxlint-disable-next-line typescript/no-unsafe-type-assertion -- the catalogue's schema has checked them
  return await (CODE[name] as Open<object>)(options, place)
}
