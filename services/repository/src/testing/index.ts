export { type ModelTree, writeModelTree } from './model-tree.ts'
