import { ServeError } from '@tutti/errors'
import type { EngineCheck, EngineOpenOptions } from '../engine-code.ts'
import { ortFolder } from './find-ort-library.ts'
import { createOnnxEngine } from './onnx-engine.ts'
import { loadOrtLibrary } from './ort-library.ts'

/** Opens the engine, as `open` of EngineCode. */
export function open({ settings, library, ...common }: EngineOpenOptions) {
  return createOnnxEngine({ ...common, library, maxStrings: settings['maxStrings'] })
}

/** Checks the engine, as `check` of EngineCode. */
export async function check(): Promise<EngineCheck> {
  return checkLibrary(loadOrtLibrary)
}

/** Checks that ONNX Runtime loads. @param load - loads it, or throws. */
export function checkLibrary(load: () => unknown): EngineCheck {
  try {
    load()
    return { status: 'ok', found: `its library loads from ${ortFolder()}` }
  } catch (error) {
    const mending =
      'install Tutti again: npm leaves out packages for other platforms, and the library needs glibc and libstdc++ (Debian: apt-get install libstdc++6)'
    return { status: 'absent', found: ServeError.from(error).message, mending }
  }
}
