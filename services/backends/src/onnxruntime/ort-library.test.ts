import t from 'tap'
import { loadOrtLibrary } from './ort-library.ts'

await t.test('a library that does not load is named', async (t) => {
  t.throws(() => loadOrtLibrary('/absent/libonnxruntime.so.1'), {
    reason: 'MODEL_LOAD_FAILED',
    message:
      /^ONNX Runtime cannot be used: \/absent\/libonnxruntime\.so\.1 does not load: .*No such file/s,
  })
  t.throws(() => loadOrtLibrary('libc.so.6'), {
    reason: 'MODEL_LOAD_FAILED',
    message: /^ONNX Runtime cannot be used: libc\.so\.6 does not load: .*OrtGetApiBase/s,
  })
})

await t.test('it is loaded once', async (t) => {
  t.equal(loadOrtLibrary(), loadOrtLibrary())
})
