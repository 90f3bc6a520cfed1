import { processEnvironment, reportFailure, runExecutable } from '@tutti/chassis'
import { ServeError } from '@tutti/errors'
import { startStep } from '../serve/start-step.ts'
import { stepExecutable } from '../serve/step-executable.ts'
import { ScriptedEngine } from './scripted-engine.ts'

/**
 * A step as a program, whose ONNX engine is scripted: after the first request whose first byte is 255, each execution fails with
 * the text of ONNX Runtime for an illegal memory access, as on a device whose context is gone.
 */

const TEXT =
  "Non-zero status code returned while running MatMul node. Name:'mm' Status Message: CUDA failure 700: an illegal memory access was encountered ; GPU=0 ; hostname=h ; expr=cudaStreamSynchronize(static_cast<cudaStream_t>(stream_)); "

function faultyEngine(): ScriptedEngine {
  const engine = new ScriptedEngine('onnxruntime')
  let isBroken = false
  engine.onLoad = (model) => {
    const execute = model.execute.bind(model)
    model.execute = (batch, o) => {
      isBroken ||= batch.some(({ request }) => request.inputs[0]?.data[0] === 255)
      const done = execute(batch, o)
      const execution = model.at(-1)
      if (isBroken) {
        for (const place of batch.keys()) {
          execution.send(place, { error: new ServeError('ENGINE_FAILED', TEXT) })
        }
      }
      execution.finish()
      return done
    }
  }
  return engine
}

// The first word is the command of `tutti`, whose place this program takes.
const argv = process.argv.slice(3)
const environment = processEnvironment(process)
try {
  const faulty = {
    ...stepExecutable,
    start: (o: Parameters<typeof startStep>[0]) => startStep({ ...o, engines: [faultyEngine()] }),
  }
  process.exitCode = await runExecutable(faulty, argv, environment)
} catch (error) {
  process.exitCode = reportFailure('faulty-step', error, environment)
}
