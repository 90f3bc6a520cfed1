import type { EngineDescriptor } from '../descriptor.ts'
import { PROCESS_SETTINGS } from '../python/descriptor.ts'

/** TorchScript models, in Python processes that have PyTorch. */
export const pytorch = {
  backend: 'pytorch',
  files: [
    { platform: 'pytorch_libtorch', filename: 'model.pt' },
    // Refused with its name when it is loaded.
    { platform: 'torch_aoti', filename: 'model.pt2' },
  ],
  format: 'pytorch',
  formatMeaning: 'TorchScript',
  title: 'TorchScript',
  settings: PROCESS_SETTINGS,
  image: 'python',
  memory: '768Mi',
  modules: ['numpy', 'torch'],
  errorPrefix: 'PyTorch execute failure: ',
} as const satisfies EngineDescriptor
