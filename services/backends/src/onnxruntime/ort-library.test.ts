import t from 'tap'
import { checkLibrary } from './open.ts'
import { loadOrtLibrary } from './ort-library.ts'

const loadAbsent = () => loadOrtLibrary('/absent/libonnxruntime.so.1')

await t.test('a library that does not load is named', async (t) => {
  t.throws(loadAbsent, {
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

await t.test('a check of the machine tells it too, with what to install', async (t) => {
  t.match(checkLibrary(loadOrtLibrary), { status: 'ok', found: /^its library loads from \// })
  t.match(checkLibrary(loadAbsent), {
    status: 'absent',
    found: /^ONNX Runtime cannot be used: /,
    mending: /libstdc\+\+6/,
  })
})
