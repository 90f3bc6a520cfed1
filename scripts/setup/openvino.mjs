import { globSync } from 'node:fs'
import { dirname, join } from 'node:path'
import { SetupFailure } from './failure.mjs'
import { ensurePython } from './python.mjs'

/**
 * Finds `TUTTI_OPENVINO`, the folder of an ONNX Runtime with OpenVINO, or `TUTTI_OPENVINO_MISSING`, why there is none. It comes from
 * Intel's wheel on PyPI, which is for Linux on x86-64.
 */
export async function findOpenvino(
  requirements,
  { env = process.env, platform = `${process.platform}-${process.arch}` } = {},
) {
  if (env.TUTTI_OPENVINO) return { TUTTI_OPENVINO: env.TUTTI_OPENVINO }
  if (platform !== 'linux-x64')
    return missing(`the wheel is for linux-x64, and this is ${platform}`)
  try {
    const python = await ensurePython(requirements, ['--no-deps'])
    const [folder] = globSync(
      join(dirname(dirname(python)), 'lib', 'python3*', 'site-packages', 'onnxruntime', 'capi'),
    )
    return { TUTTI_OPENVINO: folder }
  } catch (error) {
    if (!(error instanceof SetupFailure)) throw error
    // A machine without network tests everything else.
    return missing(error.message.trim().split('\n').at(-1))
  }
}

function missing(reason) {
  return { TUTTI_OPENVINO_MISSING: `there is no OpenVINO: ${reason}` }
}
