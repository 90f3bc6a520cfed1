// needs: python
import t from 'tap'
import { held, PythonChurn, settles, WITHOUT_CHURN } from '../testing/python-churn.ts'

const LOADS = 200
const CRASHES = 50

await t.test(
  'loads, unloads and crashes leave nothing behind',
  { skip: WITHOUT_CHURN },
  async (t) => {
    const churn = await PythonChurn.open(t)
    const before = await held()
    await churn.loads(LOADS)
    await settles(t, before, `${LOADS} loads and unloads`)
    const model = await churn.load()
    const loaded = await held()
    t.equal(loaded.arenas, 1)
    await churn.crashes(t, model, CRASHES)
    await settles(t, loaded, `${CRASHES} crashes`)
    await model.close()
    await settles(t, before, 'the end')
  },
)
