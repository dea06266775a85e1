import { mount } from 'svelte'
import '../src/fonts.css'
import '../src/page.css'
import App from './App.svelte'

mount(App, { target: document.getElementById('page')! })
