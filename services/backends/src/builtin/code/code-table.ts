import type { CodeBuiltinName, OptionsOf } from '@tutti/builtins'
import type { CodePlace, CodeStep, OpenedCode } from './code-step.ts'

/** The code of the built-ins that are no graphs. The compiler wants an entry for each; a module loads with its first step. */
const CODE: { readonly [Name in CodeBuiltinName]: CodeStep<OptionsOf<Name>> } = {
  imageDecode: {
    runsOn: 'pool',
    open: async (options) => (await import('./pictures/open-pictures.ts')).openImageDecode(options),
  },
  imageEncode: {
    runsOn: 'pool',
    open: async (options) => (await import('./pictures/open-pictures.ts')).openImageEncode(options),
  },
  probabilityBoxes: {
    runsOn: 'thread',
    open: async (options) =>
      (await import('./boxes/open-probability-boxes.ts')).openProbabilityBoxes(options),
  },
  rotatedNms: {
    runsOn: 'thread',
    open: async (options) => (await import('./boxes/open-rotated-nms.ts')).openRotatedNms(options),
  },
  cropBoxes: {
    runsOn: 'thread',
    open: async (options) => (await import('./crops/open-crop-boxes.ts')).openCropBoxes(options),
  },
  cropRotated: {
    runsOn: 'thread',
    open: async (options) =>
      (await import('./crops/open-crop-rotated.ts')).openCropRotated(options),
  },
  base64: {
    runsOn: 'thread',
    open: async (options) => (await import('./text/base64.ts')).openBase64(options),
  },
  ctcGreedy: {
    runsOn: 'thread',
    open: async (options, place) =>
      (await import('./text/ctc-greedy.ts')).openCtcGreedy(options, place),
  },
  labelIndex: {
    runsOn: 'thread',
    open: async (options, place) =>
      (await import('./text/label-index.ts')).openLabelIndex(options, place),
  },
  labelLookup: {
    runsOn: 'thread',
    open: async (options, place) =>
      (await import('./text/label-lookup.ts')).openLabelLookup(options, place),
  },
  tokenize: {
    runsOn: 'thread',
    open: async (options, place) =>
      (await import('./text/tokenize.ts')).openTokenize(options, place),
  },
  detokenize: {
    runsOn: 'thread',
    open: async (options, place) =>
      (await import('./text/detokenize.ts')).openDetokenize(options, place),
  },
  joinTexts: {
    runsOn: 'thread',
    open: async (options) => (await import('./join-texts.ts')).openJoinTexts(options),
  },
}

export const runsOnThread = (name: CodeBuiltinName): boolean => CODE[name].runsOn === 'thread'

/** @param options - as the catalogue has parsed them for this built-in. */
export async function openCode(
  name: CodeBuiltinName,
  options: object,
  place: CodePlace,
): Promise<OpenedCode> {
  // oxlint-disable-next-line typescript/no-unsafe-type-assertion -- the catalogue's schema has checked them
  return await (CODE[name] as CodeStep<object>).open(options, place)
}
