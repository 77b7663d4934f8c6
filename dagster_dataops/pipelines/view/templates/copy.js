"use strict";
const said = document.getElementById("copied");
for (const button of document.querySelectorAll("button[data-copy]")) {
  button.hidden = false;
  button.addEventListener("click", async () => {
    const text = document.getElementById(button.dataset.copy);
    try {
      await navigator.clipboard.writeText(text.textContent);
      said.textContent = "Copied.";
    } catch {
      getSelection().selectAllChildren(text);
      said.textContent = "The text is selected: press Ctrl+C to copy it.";
    }
  });
}
