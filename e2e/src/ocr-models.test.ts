// needs: python
import t from 'tap'
import { runPythonChecks } from './triton-client.ts'

await t.test('the Python models of the OCR system, without a server', async (t) => {
  await runPythonChecks(t, 'ocr_models.py', [])
})
