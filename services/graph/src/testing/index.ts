export { interpretEnsemble } from './interpret-ensemble.ts'
export { type Dice, dice, randomEnsemble } from './random-ensemble.ts'
